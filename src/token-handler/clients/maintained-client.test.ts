// Tests that the core clients builder-preview and formgate-console are written at startup.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { call, roleToken } from '../../../test/support/platform.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import type { RunningService } from '../../service/operations/serve.ts';

const expected = {
  id: 'builder-preview',
  name: 'Builder preview',
  description: expect.any(String),
  redirectUris: ['https://builder.example.org/token-handler/clients/builder-preview/callback'],
  targets: [
    { id: 'form-service', upstream: 'urn:example:platform:form-service' },
    { id: 'file-service', upstream: 'urn:example:platform:file-service' },
  ],
  keycloakLogout: false,
};

let handler: TestTokenHandler;
let proxy: FaultProxy;
let replica: RunningService | undefined;
beforeAll(async () => {
  handler = await startTestTokenHandler();
  proxy = await startFaultProxy(handler.platform.url);
});
afterEach(async () => {
  await replica?.close();
  replica = undefined;
});
afterAll(async () => {
  await proxy.close();
  await handler.close();
});

async function start(builderUrl: string, env: Record<string, string> = {}) {
  const log = captureLog();
  replica = await handler.startReplica({ env: { BUILDER_APP_URL: builderUrl, ...env }, log });
  return log;
}

async function core(): Promise<{ clients?: Record<string, unknown> }> {
  const token = await roleToken(handler.platform.access, { 'configuration-service': ['configured-service'] });
  const answer = await call(`${handler.platform.url}/configuration/v2/configuration/platform/token-handler/latest`, {
    token,
  });
  return answer.body as { clients?: Record<string, unknown> };
}
const written = async () => (await core()).clients?.['builder-preview'];
const writes = (log: ReturnType<typeof captureLog>) => log.lines().filter(({ msg }) => msg === 'core client written');

describe('the client builder-preview, if BUILDER_APP_URL is set,', () => {
  it('is written with its callback as redirect URI and the targets form-service and file-service', async () => {
    await start('https://builder.example.org');
    await expect.poll(written).toEqual(expected);
  });

  it('does not change other core clients', async () => {
    await handler.configure({ other: { name: 'Other' } }, { core: true });
    await start('https://builder.example.org');
    await expect.poll(written).toEqual(expected);
    expect((await core()).clients?.other).toEqual({ name: 'Other' });
  });

  it('is written again at every start: changes are reverted, and the log shows both versions', async () => {
    const changed = { ...expected, description: 'changed', targets: [{ id: 'everything', upstream: 'form-service' }] };
    await handler.configure({ 'builder-preview': changed }, { core: true });
    const log = await start('https://builder.example.org');
    await expect.poll(written).toEqual(expected);
    await expect.poll(() => writes(log)).toMatchObject([{ before: changed, after: expected }]);
  });

  it('is not written if it is up to date', async () => {
    await handler.configure({ 'builder-preview': { ...expected, description: 'x' } }, { core: true });
    await start('https://builder.example.org');
    await expect.poll(written).toEqual(expected);
    await replica?.close();
    const log = await start('https://builder.example.org');
    await expect.poll(() => log.text()).toContain('registration written');
    expect(writes(log)).toEqual([]);
  });

  it.each(['https://builder.example.org/', 'https://builder.example.org//'])(
    'may have a URL with trailing slashes: %s',
    async (url) => {
      await handler.configure({}, { core: true });
      await start(url);
      await expect.poll(written).toEqual(expected);
    },
  );

  it('may have a URL with a path, and http for localhost', async () => {
    await start('http://localhost:4200/builder');
    await expect.poll(written).toMatchObject({
      redirectUris: ['http://localhost:4200/builder/token-handler/clients/builder-preview/callback'],
    });
  });

  it.each(['ftp://builder.example.org', 'builder.example.org', 'javascript:alert(1)'])(
    'cannot have a URL other than http or https: %s',
    async (url) => {
      await expect(start(url)).rejects.toThrow(/BUILDER_APP_URL: must be an http or https URL/);
    },
  );
});

it('builder-preview is not written without BUILDER_APP_URL', async () => {
  await handler.configure({}, { core: true });
  const log = captureLog();
  replica = await handler.startReplica({ log });
  await expect.poll(() => log.text()).toContain('registration written');
  expect(await written()).toBeUndefined();
});

it('the client formgate-console, if CONSOLE_URL is set, is written with its callback and the services that administrators use', async () => {
  await handler.configure({ other: { name: 'Other' } }, { core: true });
  replica = await handler.startReplica({ env: { CONSOLE_URL: 'https://forms.example.org/' }, log: captureLog() });
  const written = async () => (await core()).clients ?? {};
  await expect.poll(async () => Object.keys(await written()).sort()).toEqual(['formgate-console', 'other']);
  expect((await written())['formgate-console']).toMatchObject({
    redirectUris: ['https://forms.example.org/token-handler/clients/formgate-console/callback'],
    targets: ['form-service', 'configuration-service', 'token-handler'].map((id) => ({
      id,
      upstream: `urn:example:platform:${id}`,
    })),
    keycloakLogout: false,
  });
});

it('while the configuration service is down, the token handler is ready, and writes builder-preview later', async () => {
  await handler.configure({}, { core: true });
  await proxy.break(503, { at: 1 });
  const log = await start('https://builder.example.org', { DIRECTORY_URL: `${proxy.url}/directory/v2` });
  await expect.poll(async () => (await fetch(`${replica?.metricsUrl}/readyz`)).status).toBe(200);
  await expect.poll(() => log.text()).toContain('background task failed, retrying');
  expect(await written()).toBeUndefined();
  await proxy.heal();
  await expect.poll(written).toEqual(expected);
});
