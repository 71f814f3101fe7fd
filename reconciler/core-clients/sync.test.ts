// Tests the sync with a real configuration service and without Kubernetes. The sync keeps builder-preview and
// formgate-console up to date. test/kubernetes tests the sync with Kubernetes.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createPlatform, type Platform } from '../../src/platform/platform.ts';
import { maintainedClients } from '../../src/service/clients/client-rules.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { testServiceSecret } from '../../test/support/access.ts';
import { type CapturedLog, captureLog } from '../../test/support/captured-log.ts';
import { type FaultProxy, startFaultProxy } from '../../test/support/fault-proxy.ts';
import { noRefusals } from '../../test/support/no-refusals.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { findCluster } from './cluster.ts';
import { createClientSync } from './sync.ts';

const path = '/configuration/v2/configuration/platform/token-handler';
const builderUrl = 'https://builder.example.org';
let test: TestPlatform;
let proxy: FaultProxy;
let platform: Platform;
let log: CapturedLog;

beforeAll(async () => {
  test = await startTestPlatform();
  proxy = await startFaultProxy(test.url);
  const { urns } = test.access;
  platform = createPlatform({
    config: {
      ACCESS_SERVICE_URL: test.access.url,
      DIRECTORY_URL: test.directoryUrl,
      CLIENT_SECRET: testServiceSecret(urns.service('form-service')),
      PLATFORM_CACHE_TTL: 60_000,
      PLATFORM_TIMEOUT: 5_000,
    },
    service: 'form-service',
    urns,
    metrics: createMetrics(),
    log: captureLog().log,
    env: { DIR_PLATFORM_CONFIGURATION_SERVICE_V2: `${proxy.url}/configuration/v2` },
  });
});
afterAll(async () => {
  await platform.close();
  await proxy.close();
  await test.close();
});
beforeEach(async () => {
  log = captureLog();
  await proxy.heal();
  await configure({ clients: { other: { name: 'Other' } } });
});

async function administer(method: string, suffix: string, body?: unknown) {
  const token = await roleToken(test.access, { 'configuration-service': ['configured-service'] });
  const { body: answer } = await call(`${test.url}${path}${suffix}`, { method, token, body });
  return answer as { clients: Record<string, unknown> };
}
const configure = (configuration: unknown) => administer('PATCH', '', { operation: 'REPLACE', configuration });
const clients = async () => (await administer('GET', '/latest')).clients;
const writes = () => proxy.calls.filter((line) => !line.startsWith('GET')).length;

function sync(options: {
  builderUrl?: string;
  consoleUrl?: string;
  isOff?: boolean;
  dryRun?: boolean;
  renewLease?: () => Promise<void>;
  env?: NodeJS.ProcessEnv;
}) {
  const { dryRun = false, renewLease = async () => undefined, env = {} } = options;
  return createClientSync({
    ...{ configuration: platform.configuration, tenants: platform.tenants, directory: platform.directory },
    urns: test.access.urns,
    maintained: maintainedClients(
      { BUILDER_APP_URL: options.builderUrl, CONSOLE_URL: options.consoleUrl },
      test.access.urns,
    ),
    redirectUriRules: { allowInsecure: false, allowWildcardPaths: false },
    findCluster: options.isOff ? undefined : () => findCluster({ env, timeout: 2_000 }),
    openRefusals: noRefusals,
    clock: () => new Date(),
    log: log.log,
  }).sync({ dryRun, allowPrune: true, renewLease, transact: () => Promise.reject(new Error('no transaction')) });
}

describe('a sync without Kubernetes', () => {
  it('says so, and changes no client', async () => {
    const outcome = await sync({});
    expect(outcome).toEqual({
      counts: {},
      conditions: {},
      failures: [],
      quarantined: 0,
      skipped: expect.stringContaining('no Kubernetes'),
    });
    expect(await clients()).toEqual({ other: { name: 'Other' } });
  });

  it('names the setting if CORE_CLIENTS is off', async () => {
    expect(await sync({ isOff: true })).toMatchObject({ failures: [], skipped: 'CORE_CLIENTS is off' });
  });

  it('writes builder-preview once if BUILDER_APP_URL is set, and keeps the other clients', async () => {
    expect(await sync({ builderUrl })).toMatchObject({ counts: { builderPreview: 1 }, failures: [] });
    const preview = { redirectUris: [`${builderUrl}/token-handler/clients/builder-preview/callback`] };
    expect(await clients()).toMatchObject({ other: { name: 'Other' }, 'builder-preview': preview });
    expect(writes()).toBe(1);
    expect(await sync({ builderUrl })).toMatchObject({ counts: { builderPreview: 0 } });
    expect(writes()).toBe(1);
  });

  it('writes formgate-console once if CONSOLE_URL is set, also beside builder-preview', async () => {
    const consoleUrl = 'https://forms.example.org';
    expect(await sync({ consoleUrl, builderUrl })).toMatchObject({ counts: { builderPreview: 1, console: 1 } });
    expect((await clients())['formgate-console']).toMatchObject({
      redirectUris: [`${consoleUrl}/token-handler/clients/formgate-console/callback`],
    });
    expect(await sync({ consoleUrl, builderUrl })).toMatchObject({ counts: { builderPreview: 0, console: 0 } });
    expect(writes()).toBe(2);
  });

  it('repairs builder-preview, and logs its state before and after', async () => {
    await sync({ builderUrl });
    const after = (await clients())['builder-preview'];
    const before = { id: 'builder-preview', targets: [] };
    await configure({ clients: { 'builder-preview': before } });
    await sync({ builderUrl });
    expect(await clients()).toEqual({ 'builder-preview': after });
    expect(log.lines()).toContainEqual(
      expect.objectContaining({ msg: 'maintained core client change planned', before, after }),
    );
  });

  it('writes nothing in a dry run that finds builder-preview to differ', async () => {
    expect(await sync({ builderUrl, dryRun: true })).toMatchObject({ counts: { builderPreview: 1 } });
    expect(writes()).toBe(0);
  });

  it('rejects and writes nothing if the lease is lost', async () => {
    const lost = new Error('the lease is lost');
    await expect(sync({ builderUrl, renewLease: () => Promise.reject(lost) })).rejects.toBe(lost);
    expect(writes()).toBe(0);
  });

  it.each([
    ['read', 1, 'core clients cannot be read: The configuration service failed.'],
    ['written', 3, 'core clients cannot be written: The configuration service failed.'],
  ])('reports one failure if the configuration service cannot be %s', async (_, at, failure) => {
    await proxy.break(500, { at });
    expect((await sync({ builderUrl })).failures).toEqual([failure]);
  });
});

describe('an invalid kubeconfig', () => {
  it('is a failure that does not quote the file, and builder-preview is synced', async () => {
    const { failures, counts } = await sync({ builderUrl, env: { KUBECONFIG: '/nowhere/kubeconfig' } });
    expect(failures).toEqual(['cannot read KUBECONFIG: the file is missing or invalid, or has no current context']);
    expect(counts).toEqual(expect.objectContaining({ builderPreview: 1 }));
  });
});
