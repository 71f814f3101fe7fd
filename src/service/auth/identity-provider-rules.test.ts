// Tests which wrong settings the startup check of the identity provider detects, and when the watch reports an outage.
// The identity provider is scripted.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createCertificate, type TestCertificate } from '../../../test/support/certificate.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createMetrics } from '../operations/metrics.ts';
import { WrongSetting } from '../operations/startup-check.ts';
import { checkIdentityProvider, checkIssuer } from './identity-provider.ts';
import { type WatchPace, watchIdentityProvider } from './identity-provider-watch.ts';

const path = '/auth/realms/core/.well-known/openid-configuration';
let folder: string;
let certificate: TestCertificate;
let plain: Server;
let secure: Server;
let url: string;
let secureUrl: string;
let asked: string[];
let respond: RequestListener;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formgate-provider-'));
  certificate = createCertificate(folder);
  const listener: RequestListener = (request, response) => {
    asked.push(request.url ?? '');
    respond(request, response);
  };
  plain = createServer(listener);
  secure = createTlsServer({ key: certificate.key, cert: certificate.certificate }, listener) as unknown as Server;
  url = `http://127.0.0.1:${await listenOnLoopback(plain)}/auth`;
  secureUrl = `https://127.0.0.1:${await listenOnLoopback(secure)}/auth`;
});
afterAll(async () => {
  await Promise.all([plain, secure].map(closeServer));
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  asked = [];
  respond = (_request, response) => void response.end(JSON.stringify({ issuer: `${url}/realms/core`, more: 1 }));
});
afterEach(() => vi.restoreAllMocks());

describe('the settings of the identity provider', () => {
  const problemOf = (config: Parameters<typeof checkIssuer>[0]) =>
    checkIssuer(config).then(
      () => undefined,
      (error: unknown) => error,
    );

  it('are correct if the realm core has the issuer that they state', async () => {
    await checkIssuer({ ACCESS_SERVICE_URL: url });
    expect(asked).toEqual([path]);
    const issuer = 'https://access.example.org/auth/realms/core';
    respond = (_request, response) => void response.end(JSON.stringify({ issuer }));
    await checkIssuer({ ACCESS_SERVICE_URL: url, ACCESS_SERVICE_PUBLIC_URL: 'https://access.example.org/auth' });
  });

  it.each(['https://access.example.org/auth', undefined])(
    'are proven wrong by another issuer, which the log compares with the expected one: %s',
    async (publicUrl) => {
      respond = (_request, response) => void response.end(JSON.stringify({ issuer: `${url}/realms/other` }));
      const error = await problemOf({ ACCESS_SERVICE_URL: url, ACCESS_SERVICE_PUBLIC_URL: publicUrl });
      expect(error).toBeInstanceOf(WrongSetting);
      expect(error).toMatchObject({
        message: "the identity provider's issuer differs; check ACCESS_SERVICE_PUBLIC_URL",
        facts: { issuer: `${url}/realms/other`, expected: `${publicUrl ?? url}/realms/core` },
      });
    },
  );

  it.each([
    [404, '{"issuer":"x"}'],
    [499, ''],
    [302, '{"issuer":"x"}'],
    [201, '{"issuer":"x"}'],
    [200, '<html>'],
    [200, '{}'],
    [200, '{"issuer":7}'],
    [200, 'null'],
  ])('are proven wrong by a response %i %s', async (status, text) => {
    respond = (_request, response) => void response.writeHead(status, { location: '/elsewhere' }).end(text);
    const error = await problemOf({ ACCESS_SERVICE_URL: url });
    expect(error).toBeInstanceOf(WrongSetting);
    expect(error).toMatchObject({ message: expect.stringContaining('check it'), facts: { status } });
    expect(asked).toEqual([path]);
  });

  it.each([408, 429, 500, 503, 599])('are not proven wrong by a provider that responds with %i', async (status) => {
    respond = (_request, response) => void response.writeHead(status).end('{}');
    const error = await problemOf({ ACCESS_SERVICE_URL: url });
    expect(error).not.toBeInstanceOf(WrongSetting);
    expect(error).toMatchObject({ message: `the identity provider responded with ${status}` });
  });

  it('are proven wrong by a host that does not exist', async () => {
    const error = await problemOf({ ACCESS_SERVICE_URL: `http://${'x'.repeat(64)}.example/auth` });
    expect(error).toBeInstanceOf(WrongSetting);
    expect(error).toMatchObject({ message: expect.stringContaining('host'), facts: { reason: 'ENOTFOUND' } });
  });

  it('are proven wrong by a certificate that is not trusted, or by no TLS', async () => {
    for (const [accessUrl, reason] of [
      [secureUrl, /^DEPTH_ZERO_/],
      [url.replace('http:', 'https:'), /^ERR_SSL_/],
    ] as const) {
      const error = await problemOf({ ACCESS_SERVICE_URL: accessUrl });
      expect(error).toBeInstanceOf(WrongSetting);
      expect(error).toMatchObject({
        message: expect.stringContaining('TLS'),
        facts: { reason: expect.stringMatching(reason) },
      });
    }
  });

  it('are not proven wrong by a provider that closes connections, or takes longer than 10 s', async () => {
    respond = (request) => void request.socket.destroy();
    const closed = await problemOf({ ACCESS_SERVICE_URL: url });
    expect(closed).toBeInstanceOf(TypeError);
    const late = AbortSignal.abort(new Error('late'));
    const limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late);
    expect(await problemOf({ ACCESS_SERVICE_URL: url })).toEqual(new Error('late'));
    expect(limit.mock.calls).toEqual([[10_000]]);
  });
});

describe('the startup check', () => {
  function start(account?: { authenticate(): Promise<void> }) {
    const { log, lines } = captureLog();
    const pace = { patience: 5_000, firstRetry: 5, longestRetry: 10 };
    const check = checkIdentityProvider({
      ...{ log, account, pace },
      config: { ACCESS_SERVICE_URL: url },
      metrics: createMetrics(),
    });
    onTestFinished(() => check.stop());
    return { problem: check.problem, lines };
  }

  it('passes without an account', async () => {
    const { problem } = start();
    expect(problem()).toBe('the identity provider has not responded yet');
    await expect.poll(problem).toBeUndefined();
  });

  it('asks for the account after the issuer, and fails if the account is rejected', async () => {
    let askedBefore = 0;
    const { problem } = start({
      async authenticate() {
        askedBefore = asked.length;
        throw new WrongSetting('the credentials are wrong');
      },
    });
    await expect.poll(problem).toBe('the credentials are wrong');
    expect(askedBefore).toBeGreaterThan(0);
  });

  it('does not ask for the account while the issuer is wrong', async () => {
    respond = (_request, response) => void response.end('{"issuer":"x"}');
    let calls = 0;
    const { problem } = start({
      async authenticate() {
        calls += 1;
      },
    });
    await expect.poll(problem).toContain('issuer differs');
    expect(calls).toBe(0);
  });
});

describe('the watch', () => {
  /** Everything that the watch reported, in order. */
  let reports: unknown[];
  let presented: unknown[];
  let watches = 0;
  /** Starts a watch with its own path, because the last request of an earlier watch may still arrive. */
  function watch(baseUrl: string, pace: Partial<WatchPace> | undefined) {
    watches += 1;
    const accessUrl = `${baseUrl}/${watches}`;
    const paths = () => asked.filter((each) => each.startsWith(`${new URL(accessUrl).pathname}/`));
    // An earlier watch of the same test may still report.
    const own: unknown[] = [];
    reports = own;
    presented = [];
    const stop = watchIdentityProvider({
      accessUrl,
      state: {
        status: undefined,
        up: () => void own.push('up'),
        down: (...report) => void own.push(report),
      },
      certificates: { recordServer: (...each) => void presented.push(each), recordAuthorities: () => undefined },
      pace,
    });
    onTestFinished(stop);
    return { stop, paths };
  }
  const hasty = { interval: 10, retry: 10, timeout: 1_000 };
  const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const fail: RequestListener = (_request, response) => void response.writeHead(503).end();

  it('asks for the discovery document of the realm core, after an interval', async () => {
    const { paths } = watch(url, hasty);
    expect([reports, paths()]).toEqual([[], []]);
    await expect.poll(() => reports.length).toBeGreaterThan(1);
    expect(paths()[0]).toMatch(/^\/auth\/\d+\/realms\/core\/.well-known\/openid-configuration$/);
    expect(new Set(reports)).toEqual(new Set(['up']));
    expect(presented[0]).toEqual(['identity-provider', undefined]);
  });

  it('reports the certificate of the identity provider', async () => {
    const trusted = getCACertificates();
    setDefaultCACertificates([...trusted, certificate.certificate]);
    onTestFinished(() => setDefaultCACertificates(trusted));
    watch(secureUrl, hasty);
    await expect.poll(() => reports.length).toBeGreaterThan(0);
    expect(reports[0]).toBe('up');
    expect(presented[0]).toEqual(['identity-provider', expect.objectContaining({ valid_to: expect.any(String) })]);
  });

  it('reports an outage at the second failure in a row, with the status', async () => {
    let count = 0;
    // Requests 1, 3 and 4 fail: first a single failure, then two in a row.
    respond = (request, response) => {
      count += 1;
      if ([1, 3, 4].includes(count)) fail(request, response);
      else response.end();
    };
    watch(url, hasty);
    await expect.poll(() => reports.length).toBeGreaterThan(2);
    expect(reports.slice(0, 3)).toEqual(['up', ['unreachable', { status: 503 }], 'up']);
  });

  it.each([
    ['a redirect', (_: unknown, response) => void response.writeHead(302, { location: '/' }).end(), { status: 302 }],
    ['another success', (_: unknown, response) => void response.writeHead(204).end(), { status: 204 }],
  ] as [string, RequestListener, object][])('reports an outage for %s', async (_name, listener, facts) => {
    respond = listener;
    watch(url, hasty);
    await expect.poll(() => reports[0]).toEqual(['unreachable', facts]);
  });

  it('reports an outage with its error if the provider closes connections or does not respond in time', async () => {
    respond = (request) => void request.socket.destroy();
    watch(url, hasty);
    await expect.poll(() => reports[0]).toMatchObject(['unreachable', { err: { code: expect.any(String) } }]);
    respond = () => undefined;
    watch(url, { ...hasty, timeout: 20 });
    await expect.poll(() => reports[0]).toMatchObject(['unreachable', { err: { name: 'AbortError' } }]);
  });

  it('does not wait for the body of a response, and closes the connection', async () => {
    let closed = 0;
    respond = (request, response) => {
      request.socket.on('close', () => {
        closed += 1;
      });
      response.writeHead(200).write('{');
    };
    watch(url, hasty);
    await expect.poll(() => reports.length).toBeGreaterThan(1);
    expect(reports[0]).toBe('up');
    await expect.poll(() => closed).toBeGreaterThan(0);
  });

  it('asks again sooner after a failure', async () => {
    respond = fail;
    const began = performance.now();
    const { paths } = watch(url, { interval: 2_000, retry: 0, timeout: 1_000 });
    await expect.poll(() => paths().length).toBeGreaterThan(4);
    // At the interval of 2 s, five requests would take 10 s. After a failure, the watch waits only for the retry pause.
    expect(performance.now() - began).toBeLessThan(9_000);
  });

  it.each([{ interval: 10_000, retry: 0, timeout: 1_000 }, undefined])(
    'asks rarely while the provider responds, by default every 10 s: %j',
    async (pace) => {
      const { paths } = watch(url, pace);
      await pause(30);
      expect([paths(), reports]).toEqual([[], []]);
    },
  );

  it('waits after a failure too', async () => {
    respond = fail;
    const { paths } = watch(url, { interval: 0, retry: 10_000, timeout: 1_000 });
    await expect.poll(() => paths().length).toBe(1);
    await pause(40);
    expect(paths()).toHaveLength(1);
  });

  it('ends without a report, although a request is running that would be the second to fail', async () => {
    const { promise: isRunning, resolve } = Promise.withResolvers<void>();
    let count = 0;
    respond = (request, response) => {
      count += 1;
      if (count === 1) fail(request, response);
      else resolve();
    };
    const { stop, paths } = watch(url, { ...hasty, timeout: 30_000 });
    await isRunning;
    stop();
    await pause(30);
    expect([reports, paths().length]).toEqual([[], 2]);
  });
});
