// Tests how the modules for clients work together in a process: the shares of the database connections, the counts of
// registrations, and the work in the background. The database is Postgres; the identity provider and the configuration
// service are scripted.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { memoryKeys } from '../../../test/support/memory-sessions.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '../../../test/support/scripted-provider.ts';
import { HttpAgent } from '../../platform/http-agent.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { openPools } from '../pools.ts';
import { createProviderDiscovery } from '../provider-discovery.ts';
import { migrationsDirectory } from '../start.ts';
import type { Client } from './client.ts';
import { type Clients, type ClientsOptions, sharePools, startClients } from './clients.ts';

const now = new Date('2026-08-20T17:00:00Z');
const tenant = { id: 'urn:example:tenants/demo', name: 'Demo', realm: 'demo' };
const client: Client = {
  ...{ id: 'web', name: 'Web', redirectUris: ['https://app.example.org/cb'], targets: [], keycloakLogout: false },
  ...{ scope: ['openid'], core: false },
};
const by = { subject: 'alice', name: 'Alice' };

let database: TestDatabase;
/** A connection outside the pools. */
let direct: pg.Client;
let log: CapturedLog;
let metrics: Metrics;
let pools: ReturnType<typeof openPools>;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  direct = new pg.Client({ connectionString: database.url });
  await direct.connect();
});
afterAll(async () => {
  await direct.end();
  await database.drop();
});
beforeEach(async () => {
  [log, metrics] = [captureLog(), createMetrics()];
  pools = connect(database.url);
  await direct.query('TRUNCATE client_deletions, client_events, client_registrations, registration_attempts');
});
afterEach(() => end(pools));

const connect = (url: string) =>
  openPools({ config: { DATABASE_URL: url, DATABASE_POOL_SIZE: 8 }, log: log.log, metrics });
const end = ({ pool, changePool }: typeof pools) => Promise.all([pool.end(), changePool.end()]);

describe('the shares of the database connections', () => {
  const claim = { tenant: 'one', member: 'web' };
  const share = () => sharePools({ config: { DATABASE_POOL_SIZE: 8 }, ...pools, metrics });

  it.each([
    ['pool', 'requests', 4],
    ['changePool', 'registrations', 2],
  ] as const)(
    'of %s: a client gets those of its tenant, another tenant the rest; too many get 503',
    async (which, name, most) => {
      const shared = share()[which];
      await direct.query('SELECT pg_advisory_lock(1)');
      const waitForLock = () => shared.query(claim, 'SELECT pg_advisory_xact_lock_shared(1)', []);
      const slow = Promise.allSettled(Array.from({ length: most + 100 }, waitForLock));
      await expect(waitForLock()).rejects.toMatchObject({
        ...{ slug: 'busy', message: expect.stringContaining('Too many requests of this tenant are running.') },
      });
      const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()";
      await expect.poll(async () => (await direct.query(waiting)).rowCount).toBe(most);
      await shared.query({ tenant: 'two', member: 'web' }, 'SELECT 1', []);
      expect((await direct.query(waiting)).rowCount).toBe(most);
      const text = await metrics.registry.metrics();
      expect(text).toContain(`formgate_postgres_pool_refused_total{pool="${name}",reason="full"} 1`);
      await direct.query('SELECT pg_advisory_unlock(1)');
      expect((await slow).every(({ status }) => status === 'fulfilled')).toBe(true);
    },
  );

  it.each(['pool', 'changePool'] as const)('of %s: a locked registration gets 503 that says so', async (which) => {
    await direct.query('BEGIN; LOCK TABLE client_registrations');
    const change = share()[which].transaction(claim, (client) =>
      client.query("SET LOCAL lock_timeout = '50ms'; SELECT FROM client_registrations"),
    );
    const message = expect.stringContaining('The registration is being changed by another request.');
    await expect(change).rejects.toMatchObject({ slug: 'busy', message });
    await direct.query('ROLLBACK');
  });
});

describe('the clients of a process', () => {
  let provider: ScriptedProvider;
  let sent: unknown[];
  let written: unknown[][];
  let readConfiguration: () => Promise<object>;
  let clients: Clients;
  beforeAll(async () => {
    provider = await startScriptedProvider();
  });
  afterAll(() => provider.close());
  beforeEach(() => {
    provider.reset();
    [sent, written] = [[], []];
    readConfiguration = async () => ({});
  });
  afterEach(() => clients.close());

  function start(config: object = {}, poll = 3_600_000): Clients {
    const addresses = provider.addresses('');
    clients = startClients({
      ...{ ...pools, metrics, log: log.log, clock: () => now, keys: memoryKeys, addresses },
      ...{ agent: new HttpAgent(), urns: createUrns('urn:example'), pace: { poll } },
      discover: createProviderDiscovery({ addresses, log: log.log, timeout: 5_000 }),
      config: {
        ...{ DATABASE_POOL_SIZE: 8, PLATFORM_TIMEOUT: 5_000, TENANT_REGISTRATION_LIMIT: 100 },
        ...{ PUBLIC_URL: 'https://tokens.example.org', ...config },
      },
      platform: {
        events: { send: async (event: unknown) => void sent.push(event) },
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

  it.each([
    ['provided', () => provide()],
    ['created', () => register()],
  ])('count a client that was %s as registered, and upkeep sends its event at once', async (_how, add) => {
    const issued = { client_id: 'oidc-web', client_secret: 'a secret', client_secret_expires_at: 0 };
    provider.script = {
      [token]: { status: 400, body: { error: 'invalid_grant' } },
      'POST /auth/realms/demo/clients': { status: 201, body: issued },
    };
    await direct.query(
      "INSERT INTO client_events (id, tenant_id, name, payload, created, not_before) VALUES (gen_random_uuid(), $1, 'earlier', '{}', $2, $2)",
      [tenant.id, now],
    );
    start();
    await expect.poll(() => sent).toMatchObject([{ name: 'earlier' }]);
    await add();
    expect(await counted()).toEqual([['registered', 1]]);
    await expect.poll(() => sent).toMatchObject([{ name: 'earlier' }, { tenantId: tenant.id }]);
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
    await end(pools);
    metrics = createMetrics();
    pools = connect('postgres://127.0.0.1:1/closed');
    start();
    await expect(register()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(await counted()).toEqual([['failed', 1]]);
  });

  it('write the core clients of the applications that the installation has', async () => {
    start({ CONSOLE_URL: 'https://console.example.org' });
    await expect.poll(() => written.length).toBe(1);
    expect(written).toMatchObject([
      ['platform', 'token-handler', { clients: { 'formgate-console': expect.anything() } }, { core: true }],
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
    let statements = 0;
    pools.pool.on('acquire', () => {
      statements += 1;
    });
    const { close } = start({}, 1);
    await expect.poll(() => statements).toBeGreaterThan(10);
    await close();
    const before = statements;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(statements).toBe(before);
  });
});
