// Tests how the modules for clients work together in a process: the shares of the database connections, the counts of
// registrations, and the work in the background. The database and the configuration service are scripted.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { memoryKeys } from '../../../test/support/memory-sessions.ts';
import { type ScriptedProvider, startScriptedProvider } from '../../../test/support/scripted-provider.ts';
import { HttpAgent } from '../../platform/http-agent.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { createProviderDiscovery } from '../provider-discovery.ts';
import type { Client } from './client.ts';
import { type Clients, type ClientsOptions, sharePools, startClients } from './clients.ts';

const now = new Date('2026-08-20T17:00:00Z');
const tenant = { id: 'urn:example:tenants/demo', name: 'Demo', realm: 'demo' };
const client: Client = {
  ...{ id: 'web', name: 'Web', redirectUris: ['https://app.example.org/cb'], targets: [], keycloakLogout: false },
  ...{ scope: ['openid'], core: false },
};
const by = { subject: 'alice', name: 'Alice' };

type Respond = (sql: string) => Promise<unknown>;

/** A pool whose statements call `respond`. */
function scriptedPool(respond: Respond): pg.Pool {
  const query = (sql: string) => respond(sql);
  const member = { query, release: () => undefined, on: () => undefined, off: () => undefined };
  return {
    query,
    connect: async () => ({ ...member, once: () => undefined, removeListener: () => undefined }),
  } as never;
}

const failure = (code: string) => Object.assign(new Error('the statement failed'), { code });

describe('the shares of the database connections', () => {
  const claim = { tenant: 'one', member: 'web' };
  let metrics: Metrics;
  let respond: Respond;
  let pools: ReturnType<typeof sharePools>;
  beforeEach(() => {
    metrics = createMetrics();
    const pool = scriptedPool((sql) => respond(sql));
    pools = sharePools({ config: { DATABASE_POOL_SIZE: 8 }, pool, changePool: pool, metrics });
  });

  it.each([
    ['pool', 'requests', 4],
    ['changePool', 'registrations', 2],
  ] as const)(
    'of %s: a client gets those of its tenant, another tenant the rest; too many get 503',
    async (which, name, share) => {
      const gate = Promise.withResolvers<void>();
      onTestFinished(() => gate.resolve());
      let running = 0;
      respond = async (sql) => {
        running += 1;
        if (sql === 'slow') await gate.promise;
      };
      const query = (sql: string, given = claim) => pools[which].query(given, sql, []);
      const slow = Array.from({ length: share + 100 }, () => query('slow'));
      const settled = Promise.allSettled(slow);
      await expect(query('slow')).rejects.toMatchObject({
        ...{ slug: 'busy', message: expect.stringContaining('Too many requests of this tenant are running.') },
      });
      expect(running).toBe(share);
      await query('fast', { tenant: 'two', member: 'web' });
      const text = await metrics.registry.metrics();
      expect(text).toContain(`formgate_postgres_pool_refused_total{pool="${name}",reason="full"} 1`);
      gate.resolve();
      expect((await settled).every(({ status }) => status === 'fulfilled')).toBe(true);
    },
  );

  it.each(['pool', 'changePool'] as const)('of %s: a locked registration gets 503 that says so', async (which) => {
    respond = () => Promise.reject(failure('55P03'));
    const message = expect.stringContaining('The registration is being changed by another request.');
    await expect(pools[which].query(claim, 'UPDATE', [])).rejects.toMatchObject({ slug: 'busy', message });
  });
});

describe('the clients of a process', () => {
  let provider: ScriptedProvider;
  let log: CapturedLog;
  let metrics: Metrics;
  let statements: string[];
  let respond: Respond;
  let written: unknown[][];
  let readConfiguration: () => Promise<object>;
  let clients: Clients;
  beforeAll(async () => {
    provider = await startScriptedProvider();
  });
  afterAll(() => provider.close());
  beforeEach(() => {
    provider.reset();
    [log, metrics] = [captureLog(), createMetrics()];
    [statements, written] = [[], []];
    respond = async () => ({ rows: [], rowCount: 0 });
    readConfiguration = async () => ({});
  });
  afterEach(() => clients.close());

  function start(config: object = {}, poll = 3_600_000): Clients {
    const pool = scriptedPool((sql) => {
      statements.push(sql);
      return respond(sql);
    });
    const addresses = provider.addresses('');
    clients = startClients({
      ...{ pool, changePool: pool, metrics, log: log.log, clock: () => now, keys: memoryKeys, addresses },
      ...{ agent: new HttpAgent(), urns: createUrns('urn:example'), pace: { poll } },
      discover: createProviderDiscovery({ addresses, log: log.log, timeout: 5_000 }),
      config: { DATABASE_POOL_SIZE: 8, PLATFORM_TIMEOUT: 5_000, PUBLIC_URL: 'https://tokens.example.org', ...config },
      platform: {
        events: { send: async () => undefined },
        configuration: {
          read: () => readConfiguration(),
          update: async (...given: unknown[]) => void written.push(given),
          latest: async () => undefined,
          peekLatest: () => undefined,
        },
      },
    } as unknown as ClientsOptions);
    return clients;
  }
  const provide = () =>
    clients.provided.register({ tenant, client, by, clientId: 'town-web', clientSecret: 'a secret' });
  const register = () => clients.registrar.register({ tenant, client, by, registrationToken: 'a token' });
  const counted = async () => {
    const { values } = (await metrics.registry.getSingleMetric('formgate_client_registrations_total')?.get()) ?? {};
    return values?.map(({ labels, value }) => [labels.outcome, value]);
  };
  const token = 'POST /auth/realms/demo/token';

  /** Number of times that upkeep has looked for events to send. */
  const looks = () => statements.filter((sql) => sql.includes('UPDATE client_events SET attempts')).length;

  it.each([
    ['provided', () => provide()],
    ['created', () => register()],
  ])('count a client that was %s as registered, and upkeep sends its event at once', async (_how, add) => {
    const issued = { client_id: 'oidc-web', client_secret: 'a secret', client_secret_expires_at: 0 };
    provider.script = {
      [token]: { status: 400, body: { error: 'invalid_grant' } },
      'POST /auth/realms/demo/clients': { status: 201, body: issued },
    };
    start();
    await expect.poll(looks).toBe(1);
    await add();
    expect(await counted()).toEqual([['registered', 1]]);
    await expect.poll(looks).toBe(2);
  });

  it('tell the identity provider the public address of the process', async () => {
    start();
    await expect(register()).rejects.toThrow();
    expect(provider.calls.at(-1)?.body).toContain('"https://tokens.example.org/');
  });

  it('count a client with wrong credentials as refused', async () => {
    start();
    provider.script = { [token]: { status: 401, body: { error: 'invalid_client' } } };
    await expect(provide()).rejects.toMatchObject({ status: 400 });
    expect(await counted()).toEqual([['refused', 1]]);
  });

  it('count a registration whose token the identity provider refuses as refused', async () => {
    start();
    provider.script = { 'POST /auth/realms/demo/clients': { status: 401, body: { error: 'invalid_token' } } };
    await expect(register()).rejects.toMatchObject({ status: 400 });
    expect(await counted()).toEqual([['refused', 1]]);
  });

  it('count a registration as failed while the identity provider fails, or the database', async () => {
    start();
    provider.script = { 'POST /auth/realms/demo/clients': { status: 500 } };
    await expect(register()).rejects.toMatchObject({ status: 502 });
    expect(await counted()).toEqual([['failed', 1]]);
    await clients.close();
    [metrics, respond] = [createMetrics(), () => Promise.reject(failure('08006'))];
    start();
    await expect(register()).rejects.toThrow('the statement failed');
    expect(await counted()).toEqual([['failed', 1]]);
  });

  it('write the core clients of the applications that the installation has', async () => {
    start({ CONSOLE_URL: 'https://console.example.org' });
    await expect.poll(() => written.length).toBe(1);
    expect(written).toMatchObject([
      ['platform', 'token-handler', { clients: { 'formgate-console': {} } }, { core: true }],
    ]);
  });

  it('write a core client again after a failure, but not once more when the process stops', async () => {
    let reads = 0;
    readConfiguration = async () => {
      reads += 1;
      throw new Error('no configuration');
    };
    const { close } = start({ CONSOLE_URL: 'https://console.example.org' });
    const failed = () => log.lines().filter(({ task }) => task === 'write core client');
    await expect.poll(() => failed().length).toBe(1);
    expect(failed()).toMatchObject([{ client: 'formgate-console' }]);
    const before = reads;
    await close();
    expect(reads).toBe(before);
  });

  it('start no work after the end of the process', async () => {
    const { close } = start({}, 1);
    await expect.poll(looks).toBeGreaterThan(2);
    await close();
    const before = statements.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(statements.length).toBe(before);
  });
});
