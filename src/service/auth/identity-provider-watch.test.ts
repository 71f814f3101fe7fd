// Tests the watch of the identity provider with a real server that fails, hangs and goes away, over http and https.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, rootCertificates, setDefaultCACertificates } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createCertificate } from '../../../test/support/certificate.ts';
import { createPlatformCalls } from '../../../test/support/platform-calls.ts';
import { createServiceAccount } from '../../platform/service-account.ts';
import { createDependencyState } from '../operations/dependency-state.ts';
import { createMetrics } from '../operations/metrics.ts';
import { type WatchedAccount, watchIdentityProvider } from './identity-provider-watch.ts';

const pace = { interval: 40, retry: 20, timeout: 2_000 };

async function listen(server: Server, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function watch(accessUrl: string, account?: WatchedAccount) {
  const captured = captureLog();
  const metrics = createMetrics();
  const state = createDependencyState({
    ...{ dependency: 'identity-provider', name: 'the identity provider', log: captured.log, metrics },
  });
  onTestFinished(watchIdentityProvider({ accessUrl, account, state, certificates: metrics.certificates, pace }));
  return { state, metrics, messages: () => captured.lines().map(({ msg }) => msg), lines: captured.lines };
}

const works: RequestListener = (_request, response) => void response.end('{}');

it('logs one line when the identity provider fails and one when it is back, however it fails', async () => {
  let answer = works;
  const server = createServer((request, response) => answer(request, response));
  const port = await listen(server);
  const { state, metrics, messages, lines } = watch(`http://127.0.0.1:${port}/auth`);
  await expect.poll(() => state.status).toBe('up');
  const failures: RequestListener[] = [
    (_request, response) => void response.writeHead(503).end(),
    (_request, response) => void response.writeHead(404).end(),
    (request) => void request.socket.destroy(),
    // This listener never responds.
    () => undefined,
  ];
  for (const fail of failures) {
    answer = fail;
    await expect.poll(() => state.status).toBe('unreachable');
    expect(await metrics.registry.metrics()).toContain('formgate_dependency_up{dependency="identity-provider"} 0');
    answer = works;
    await expect.poll(() => state.status).toBe('up');
  }
  const outage = ['the identity provider is unreachable', 'the identity provider is reachable again'];
  expect(messages()).toEqual(['the identity provider is reachable', ...failures.flatMap(() => outage)]);
  expect(lines()[1]).toMatchObject({ level: 'error', dependency: 'identity-provider', status: 503 });
  expect(await metrics.registry.metrics()).toContain('formgate_dependency_up{dependency="identity-provider"} 1');
});

it.each([400, 401])(
  'reports that the identity provider refuses the service account (%i), until it accepts it again',
  async (status) => {
    let accepts = true;
    const server = createServer((request, response) => {
      const isRefused = request.method === 'POST' && !accepts;
      response.writeHead(isRefused ? status : 200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ access_token: 'token', expires_in: 300 }));
    });
    const accessUrl = `http://127.0.0.1:${await listen(server)}/auth`;
    const calls = createPlatformCalls();
    onTestFinished(() => calls.close());
    const account = createServiceAccount({ ...calls.options, accessUrl, clientId: 'forms', clientSecret: 'canary' });
    const { state, metrics, messages } = watch(accessUrl, account);
    await account.token();
    await expect.poll(() => state.status).toBe('up');
    accepts = false;
    calls.advance(300_000);
    await expect(account.token()).rejects.toThrow('identity-provider');
    await expect.poll(() => state.status).toBe('refused');
    expect(await metrics.registry.metrics()).toContain('formgate_dependency_up{dependency="identity-provider"} 0');
    accepts = true;
    await expect.poll(() => state.status).toBe('up');
    expect(messages()).toEqual([
      'the identity provider is reachable',
      'the identity provider refuses the credentials',
      'the identity provider is reachable again',
    ]);
  },
);

it('reports the end of a refusal also while the service account holds an older token', async () => {
  let accepts = true;
  const server = createServer((request, response) => {
    response.writeHead(request.method === 'POST' && !accepts ? 401 : 200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ access_token: 'token', expires_in: 3_600 }));
  });
  const accessUrl = `http://127.0.0.1:${await listen(server)}/auth`;
  const calls = createPlatformCalls();
  onTestFinished(() => calls.close());
  const account = createServiceAccount({ ...calls.options, accessUrl, clientId: 'forms', clientSecret: 'canary' });
  const { state } = watch(accessUrl, account);
  const held = await account.token();
  accepts = false;
  await expect(account.renew(held)).rejects.toThrow('identity-provider');
  await expect.poll(() => state.status).toBe('refused');
  accepts = true;
  await expect.poll(() => state.status).toBe('up');
});

it('does not report a single failed request', async () => {
  let requests = 0;
  const port = await listen(
    createServer((_request, response) => {
      requests += 1;
      response.writeHead(requests === 3 ? 503 : 200).end();
    }),
  );
  const { state, messages } = watch(`http://127.0.0.1:${port}`);
  await expect.poll(() => requests).toBeGreaterThan(5);
  expect([state.status, messages()]).toEqual(['up', ['the identity provider is reachable']]);
});

it('asks for the discovery document of the realm core, and reads the certificate', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-watch-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { key, certificate } = createCertificate(folder, { days: 9 });
  const trusted = getCACertificates();
  setDefaultCACertificates([...trusted, certificate]);
  onTestFinished(() => setDefaultCACertificates(trusted));
  const paths: (string | undefined)[] = [];
  const server = createTlsServer({ key, cert: certificate }, (request, response) => {
    paths.push(request.url);
    response.end();
  });
  const port = await listen(server as unknown as Server);
  const { state, metrics } = watch(`https://127.0.0.1:${port}/auth`);
  await expect.poll(() => state.status).toBe('up');
  expect(paths[0]).toBe('/auth/realms/core/.well-known/openid-configuration');
  // A bundle may contain text that is not a certificate. The metric shows the certificate that expires first.
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
  metrics.certificates.recordAuthorities(
    'extra-ca',
    `# our authorities\n${rootCertificates[0]}\n${certificate}\n${broken}`,
  );
  metrics.certificates.recordAuthorities('redis-ca', 'no certificate');
  const text = await metrics.registry.metrics();
  const daysOf = (name: string) => {
    const seconds = Number(new RegExp(`certificate="${name}"\\} (\\d+)`).exec(text)?.[1]);
    return Math.round((seconds * 1_000 - Date.now()) / 86_400_000);
  };
  expect([daysOf('identity-provider'), daysOf('extra-ca')]).toEqual([9, 9]);
  expect(text).not.toContain('certificate="redis-ca"');
});
