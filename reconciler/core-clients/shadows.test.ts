// Tests the search for shadowed clients among a thousand tenants. The configuration service is real; some reads fail.
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createPlatform, type Platform } from '../../src/platform/platform.ts';
import { PlatformError } from '../../src/platform/platform-error.ts';
import { applySeed } from '../../src/platform-server/seed.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';
import { testServiceSecret } from '../../test/support/access.ts';
import { captureLog } from '../../test/support/captured-log.ts';
import { type FaultProxy, startFaultProxy } from '../../test/support/fault-proxy.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { findShadows } from './shadows.ts';

const size = 1_000;
const idOf = (n: number) => n.toString(16).padStart(24, '0');
const ids = new Set(['permits', 'portal']);

let test: TestPlatform;
let proxy: FaultProxy;
let platform: Platform;
/**
 * The tenants whose configuration cannot be read, keyed by tenant id: the HTTP status of the response, or `hang` if no
 * response comes.
 */
let broken: Map<string, number | 'hang'>;

beforeAll(async () => {
  test = await startTestPlatform();
  const tenants = Array.from({ length: size - 2 }, (_, n) => ({
    id: idOf(n),
    name: `Tenant ${n}`,
    realm: `realm-${n}`,
  }));
  const metrics = createMetrics();
  const { log } = captureLog();
  const pool = createPool({ url: test.databaseUrl, size: 1, log, metrics });
  await applySeed(pool, { tenants });
  await pool.end();
  for (const n of [1, 500]) await configure(n, { clients: { permits: { name: 'Own' }, other: { name: 'Other' } } });
  await configure(2, { portal: { name: 'Own, at the top level' } });
  await configure(3, { clients: 'not an object' });
  proxy = await startFaultProxy(test.url, { scripted });
  const { urns } = test.access;
  platform = createPlatform({
    config: {
      ACCESS_SERVICE_URL: test.access.url,
      DIRECTORY_URL: test.directoryUrl,
      CLIENT_SECRET: testServiceSecret(urns.service('form-service')),
      PLATFORM_CACHE_TTL: 1,
      PLATFORM_TIMEOUT: 5_000,
    },
    service: 'form-service',
    urns,
    metrics,
    log,
    env: {
      DIR_PLATFORM_CONFIGURATION_SERVICE_V2: `${proxy.url}/configuration/v2`,
    },
  });
}, 120_000);
afterAll(async () => {
  await platform.close();
  await proxy.close();
  await test.close();
});
beforeEach(() => {
  broken = new Map();
});

/** Makes the reads of the tenants in `broken` fail. */
async function scripted({ url = '' }: IncomingMessage): Promise<number | undefined> {
  const tenantId = new URL(url, 'http://x').searchParams.get('tenantId') ?? '';
  const fault = broken.get(tenantId);
  if (fault === 'hang') await sleep(60_000, undefined, { ref: false });
  return typeof fault === 'number' ? fault : undefined;
}

const tenantId = (n: number) => test.access.urns.tenant(idOf(n));

async function configure(n: number, configuration: unknown): Promise<void> {
  const token = await roleToken(test.access, { 'configuration-service': ['configured-service'] });
  const query = new URLSearchParams({ tenantId: tenantId(n) });
  const { status, text } = await call(`${test.url}/configuration/v2/configuration/platform/token-handler?${query}`, {
    method: 'PATCH',
    token,
    body: { operation: 'REPLACE', configuration },
  });
  if (status !== 200) throw new Error(`${status} ${text}`);
}

async function find(options: { timeLimit?: number; signal?: AbortSignal } = {}) {
  const { log, lines } = captureLog();
  const { tenants, configuration } = platform;
  const found = await findShadows(ids, { tenants, configuration, log, ...options });
  const affected = [...(found?.affected ?? [])].map(([id, list]) => [id, list.map((tenant) => tenant.name).sort()]);
  return { found, affected: Object.fromEntries(affected), lines: lines() };
}

it('names the tenants that have a client with the id of a core client, each read once', async () => {
  proxy.calls.length = 0;
  const { affected, found } = await find();
  expect(affected).toEqual({ permits: ['Tenant 1', 'Tenant 500'], portal: ['Tenant 2'] });
  expect(found).toMatchObject({ read: size, unread: [] });
  expect(proxy.calls.filter((line) => line.includes('/platform/token-handler?')).length).toBe(size);
});

it.each([403, 500, 502])('a tenant whose configuration gives %i does not affect the others', async (status) => {
  broken = new Map([[tenantId(1), status]]);
  const { affected, found, lines } = await find();
  expect(affected).toEqual({ permits: ['Tenant 500'], portal: ['Tenant 2'] });
  expect(found).toMatchObject({ read: size - 1, unread: [{ id: tenantId(1) }] });
  expect(lines).toContainEqual(expect.objectContaining({ tenant: tenantId(1), dependency: 'configuration' }));
});

it('tenants that hang take at most three seconds each, do not delay the others, and keep the time limit', async () => {
  broken = new Map(Array.from({ length: 8 }, (_, n) => [tenantId(n + 10), 'hang']));
  const started = performance.now();
  const { affected, found } = await find({ timeLimit: 45_000 });
  expect(affected).toEqual({ permits: ['Tenant 1', 'Tenant 500'], portal: ['Tenant 2'] });
  expect(found?.unread.map(({ id }) => id).sort()).toEqual([...broken.keys()].sort());
  expect(performance.now() - started).toBeLessThan(45_000);
});

it('stops at its time limit, or when the run is asked to end, and reports the others as unread', async () => {
  const late = await find({ timeLimit: 50 });
  expect(late.found?.unread.length).toBeGreaterThan(0);
  expect((late.found?.unread.length ?? 0) + (late.found?.read ?? 0)).toBe(size);
  expect(late.lines).toContainEqual(expect.objectContaining({ msg: 'clients of some tenants were not read' }));
  const stopped = await find({ signal: AbortSignal.abort() });
  expect(stopped.found).toMatchObject({ read: 0, unread: { length: size } });
});

it('is unknown if the tenants cannot be listed', async () => {
  const { log, lines } = captureLog();
  const tenants = { all: () => Promise.reject(new PlatformError('tenants', 'failed')) };
  expect(await findShadows(ids, { tenants, configuration: platform.configuration, log })).toBeUndefined();
  expect(lines()).toMatchObject([{ dependency: 'tenants', kind: 'failed' }]);
});
