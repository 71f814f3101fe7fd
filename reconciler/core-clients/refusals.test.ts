// Tests core clients that the configuration service refuses, and statuses that the API server refuses. The refused
// items must not affect others, and runs must not retry them. The cluster and the configuration service are fakes; the
// quarantine is in a real Postgres.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PlatformError } from '../../src/platform/platform-error.ts';
import type { ClientEntry } from '../../src/service/clients/client-rules.ts';
import { withTransaction } from '../../src/service/postgres/postgres.ts';
import { createUrns } from '../../src/service/urn.ts';
import { captureLog } from '../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import type { Writer } from '../lease.ts';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-calls.ts';
import { openRefusals } from './refusals.ts';
import type { CoreClientResource, CoreClientStatus } from './resource.ts';
import { createClientSync } from './sync.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(new URL('../../src/forms/migrations', import.meta.url).pathname);
  ({ pool } = database);
});
afterAll(() => database.drop());

let documents: Record<string, Record<string, Record<string, unknown>>>;
let statuses: Map<string, CoreClientStatus>;
let generations: Record<string, number>;
let calls: string[];
let refused: { clients: string[]; statuses: string[]; events: string[] };
/** Names of resources with a target that the directory does not know. */
let unresolved: string[];
/** The status with which the configuration service rejects `refused.clients`. */
let refusal: number;
/** If true, the API server fails whenever a status is written. */
let clusterFails: boolean;
beforeEach(async () => {
  await pool.query('TRUNCATE quarantine');
  documents = {};
  statuses = new Map();
  generations = { one: 1, bad: 1, two: 1 };
  calls = [];
  refused = { clients: [], statuses: [], events: [] };
  unresolved = [];
  refusal = 400;
  clusterFails = false;
});

const targetsOf = (name: string) => (name === 'bad' ? [{ id: 'api', upstream: `urn:example:platform:${name}` }] : []);
const resourceOf = (name: string): CoreClientResource => ({
  ...{ name, uid: `uid-${name}`, created: '2026-01-01T00:00:00Z', resourceVersion: '1' },
  generation: generations[name] ?? 1,
  spec: { redirectUris: [`https://${name}-${generations[name]}.example.org/callback`], targets: targetsOf(name) },
  status: statuses.get(name) ?? {},
});

const cluster: Cluster = {
  namespace: 'formgate',
  list: async () => Object.keys(generations).map(resourceOf),
  async applyStatus({ name }, status) {
    if (clusterFails) throw new ClusterError('failed', 'apply a status', { status: 500 });
    calls.push(`status ${name}`);
    if (refused.statuses.includes(name)) throw new ClusterError('refused', 'apply a status', { status: 422 });
    statuses.set(name, status);
    return 'applied';
  },
  async createEvent({ name }) {
    calls.push(`event ${name}`);
    if (refused.events.includes(name)) throw new ClusterError('refused', 'create an Event', { status: 422 });
    return true;
  },
  close: async () => undefined,
};

type Configuration = Parameters<typeof createClientSync>[0]['configuration'];
const configuration = {
  read: async (_namespace: string, name: string) => ({
    latest: { configuration: structuredClone(documents[name]), revision: 1 },
  }),
  async update(_namespace: string, name: string, { clients, ...others }: Record<string, Record<string, unknown>>) {
    const document = documents[name] ?? {};
    const names = Object.keys(clients ?? {});
    if (names.length > 0) calls.push(`write ${names.join()}`);
    if (names.some((id) => refused.clients.includes(id)))
      throw new PlatformError('configuration', 'rejected', { upstreamStatus: refusal });
    documents[name] = { ...document, ...others, ...(clients && { clients: { ...document.clients, ...clients } }) };
    return { revision: 2 };
  },
  async deleteProperty(_namespace: string, name: string, property: string) {
    calls.push(`remove ${property}`);
    if (refused.clients.includes(property))
      throw new PlatformError('configuration', 'rejected', { upstreamStatus: 400 });
    delete documents[name]?.clients?.[property.replace('clients.', '')];
  },
} as unknown as Configuration;

async function resolve(urn: string): Promise<string> {
  if (unresolved.some((name) => urn.endsWith(name)))
    throw new PlatformError('directory', 'rejected', { reason: 'absent' });
  return 'http://upstream.example.org';
}

const transact: Writer['transact'] = (work) => withTransaction(pool, work);

/** Runs a sync. With `isOff`, resources are not read. */
function sync(options: { maintained?: readonly ClientEntry[]; isOff?: boolean; signal?: AbortSignal } = {}) {
  const { maintained = [], isOff = false, signal } = options;
  const clock = () => new Date('2026-11-22T10:00:00Z');
  const { log } = captureLog();
  calls = [];
  return createClientSync({
    ...{
      configuration,
      tenants: { all: async () => [] },
      directory: { resolve },
      urns: createUrns('urn:example'),
      maintained,
      redirectUriRules: { allowInsecure: false, allowWildcardPaths: false },
    },
    findCluster: isOff ? undefined : async () => cluster,
    ...{ openRefusals: () => openRefusals({ pool, clock, log }), clock, log },
  }).sync({ dryRun: false, allowPrune: true, renewLease: async () => undefined, transact, signal });
}
const entries = async () => (await pool.query('SELECT kind, item, reason, detail, attempts FROM quarantine')).rows;
const readyOf = (name: string) => statuses.get(name)?.conditions.find(({ type }) => type === 'Ready')?.status;

it('a refused client is quarantined while the others are written, and is retried after a change of its resource', async () => {
  refused.clients = ['bad'];
  expect(await sync()).toMatchObject({ failures: [], quarantined: 1 });
  expect(['one', 'bad', 'two'].map(readyOf)).toEqual(['True', 'False', 'True']);
  expect(await entries()).toMatchObject([
    {
      kind: 'core-client',
      item: expect.stringMatching(/^bad@/),
      reason: 'service-refused',
      detail: 'configuration 400',
    },
  ]);
  expect(await sync()).toMatchObject({ failures: [], quarantined: 0 });
  expect(calls).toEqual([]);
  expect(readyOf('bad')).toBe('False');
  generations.bad = 2;
  refused.clients = [];
  expect(await sync()).toMatchObject({ quarantined: 0 });
  expect(readyOf('bad')).toBe('True');
  expect(await entries()).toEqual([]);
});

it.each([404, 405])(
  'a client is not quarantined if the service has no such operation (%i), and is tried again',
  async (status) => {
    refused.clients = ['bad'];
    refusal = status;
    expect(await sync()).toMatchObject({ failures: [expect.stringContaining('cannot be written')], quarantined: 0 });
    expect(calls.filter((call) => call.startsWith('write'))).toHaveLength(1);
    expect(await entries()).toEqual([]);
    refused.clients = [];
    expect(await sync()).toMatchObject({ failures: [], quarantined: 0 });
    expect(['one', 'bad', 'two'].map(readyOf)).toEqual(['True', 'True', 'True']);
  },
);

it('a released client is tried again', async () => {
  refused.clients = ['bad'];
  await sync();
  await pool.query('UPDATE quarantine SET released = true');
  expect(await sync()).toMatchObject({ quarantined: 1 });
  expect(calls).toContain('write bad');
  expect(await entries()).toMatchObject([{ attempts: 2 }]);
});

it('a client that the service refuses to remove stays owned, and the others are removed', async () => {
  await sync();
  refused.clients = ['clients.bad'];
  generations = {};
  expect(await sync()).toMatchObject({ failures: [], counts: { pruned: 2 }, quarantined: 1 });
  expect(Object.keys(documents['token-handler']?.clients ?? {})).toEqual(['bad']);
  await sync();
  expect(calls).toEqual([]);
});

it('a refused status is quarantined, and the statuses of the others are written', async () => {
  refused.statuses = ['bad'];
  expect(await sync()).toMatchObject({ failures: [], quarantined: 1 });
  expect([readyOf('one'), readyOf('bad'), readyOf('two')]).toEqual(['True', undefined, 'True']);
  expect(await sync()).toMatchObject({ quarantined: 0 });
  expect(calls).toEqual([]);
});

it('refused Events fail no run, and the status of their resource is still written', async () => {
  refused.events = ['bad'];
  unresolved = ['bad'];
  expect(await sync()).toMatchObject({ failures: [], quarantined: 0 });
  expect(calls.filter((call) => call === 'event bad')).toHaveLength(2);
  const resolved = () => statuses.get('bad')?.conditions.find(({ type }) => type === 'TargetsResolved')?.status;
  expect([resolved(), await entries()]).toEqual(['False', []]);
  unresolved = [];
  expect(await sync()).toMatchObject({ failures: [], quarantined: 0 });
  expect(resolved()).toBe('True');
});

it('an item that is refused twice in one sync is quarantined once', async () => {
  const { log } = captureLog();
  const refusals = await openRefusals({ pool, clock: () => new Date('2026-11-22T10:00:00Z'), log });
  const refusal = { kind: 'core-client', subject: 'bad', version: '1', detail: 'configuration 400' } as const;
  refusals.add(refusal);
  refusals.add(refusal);
  expect(await refusals.settle(transact)).toBe(1);
  expect(await entries()).toMatchObject([{ item: 'bad@1', attempts: 1 }]);
});

it('a sync that lost its lease leaves the quarantine of the next run alone', async () => {
  refused.clients = ['bad'];
  await sync();
  const { log } = captureLog();
  const refusals = await openRefusals({ pool, clock: () => new Date('2026-11-22T10:00:00Z'), log });
  refusals.add({ kind: 'core-client', subject: 'late', version: '1', detail: 'configuration 400' });
  const lost = new Error('the lease is lost');
  await expect(refusals.settle(() => Promise.reject(lost))).rejects.toBe(lost);
  expect(await entries()).toMatchObject([{ item: expect.stringMatching(/^bad@/) }]);
});

it('a refused status is not tried again because a run ended before it reached that status', async () => {
  refused.statuses = ['bad'];
  await sync();
  expect(await sync({ signal: AbortSignal.abort() })).toMatchObject({ failures: [] });
  expect(await entries()).toHaveLength(1);
  expect(await sync()).toMatchObject({ quarantined: 0 });
  expect(calls).toEqual([]);
});

describe.each([{ isOff: false }, { isOff: true }])('a refused client of Formgate itself, with %j', (options) => {
  const preview = (redirectUri: string): ClientEntry => ({
    ...{ id: 'builder-preview', name: 'Preview', redirectUris: [redirectUri], targets: [], keycloakLogout: false },
  });
  const first = { ...options, maintained: [preview('https://builder.example.org/first')] };
  const second = { ...options, maintained: [preview('https://builder.example.org/second')] };
  const tries = () => calls.filter((call) => call === 'write builder-preview').length;

  it('is quarantined once, and is tried again only when it is released', async () => {
    refused.clients = ['builder-preview'];
    expect(await sync(first)).toMatchObject({ failures: [], quarantined: 1 });
    expect(tries()).toBe(1);
    expect(await sync(first)).toMatchObject({ failures: [], quarantined: 0 });
    expect(tries()).toBe(0);
    await pool.query('UPDATE quarantine SET released = true');
    expect(await sync(first)).toMatchObject({ quarantined: 1 });
    expect(await entries()).toMatchObject([{ item: expect.stringMatching(/^builder-preview@/), attempts: 2 }]);
  });

  it('is tried again when its settings change, and leaves the quarantine when it is written', async () => {
    refused.clients = ['builder-preview'];
    await sync(first);
    refused.clients = [];
    expect(await sync(second)).toMatchObject({ quarantined: 0 });
    expect(tries()).toBe(1);
    expect(await entries()).toEqual([]);
  });
});

it('a sync that does not read the resources keeps the quarantine of their clients', async () => {
  refused.clients = ['bad'];
  await sync();
  await sync({ isOff: true });
  expect(await entries()).toHaveLength(1);
});

it('a client that was refused in a failed run is not tried again', async () => {
  refused.clients = ['bad'];
  clusterFails = true;
  expect(await sync()).toMatchObject({ failures: [expect.any(String)], quarantined: 1 });
  clusterFails = false;
  expect(await sync()).toMatchObject({ failures: [], quarantined: 0 });
  expect(calls).not.toContain('write bad');
});
