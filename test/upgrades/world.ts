// An installation in which each process runs either the old version or this version. It has four databases, Redis, an
// identity provider and a mail server. Its stores are empty or restored from a dump. With a dump, its clock starts at
// the time of the dump. Public addresses are fixed, because the stores contain them.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import pino from 'pino';
import { createPostgresEntityStore } from '../../dev/access/postgres-entity-store.ts';
import { findFreePort } from '../../dev/ports.ts';
import { systemClock } from '../../src/service/clock.ts';
import { migrate } from '../../src/service/postgres/migrate.ts';
import { startTestAccess, type TestAccess, testServiceSecret } from '../support/access.ts';
import { startTestMailbox, type TestMailbox } from '../support/mailbox.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { type Dump, databases, restoreRedis } from './dump.ts';
import { type Product, runReconciler, type Service, startProduct, type Version } from './products.ts';
import { shiftTime } from './shifted-time.ts';

export const accessPublicUrl = 'http://127.0.0.1:4001/auth';
export const site = 'http://127.0.0.1:4000';
/** Secrets of the dumps, which are not used anywhere else. */
const keyRing = `dump:${Buffer.alloc(32, 7).toString('base64')}`;
const codeKey = 'a key of the dumps with more than 32 characters';
export const tenant = { id: '65f0c2a9e4b0a1d2c3f4a5b6', name: 'Demo', realm: 'demo', adminEmail: 'admin@example.com' };
export const targetUrn = 'urn:example:demo:api:v1';

export interface World {
  access: TestAccess;
  mailbox: TestMailbox;
  redis: TestRedis;
  upstream: Upstream;
  pools: Record<keyof Dump['sql'], pg.Pool>;
  databaseUrls: Record<keyof Dump['sql'], string>;
  start(service: Service, version: Version, env?: Record<string, string>): Promise<Product>;
  reconcile(version: Version): Promise<string>;
  /** Moves the time of the identity provider, and of processes that start afterwards. */
  advance(milliseconds: number): void;
  /** The platform server's address. It stays the same when the platform server is restarted. */
  platformUrl: string;
  close(): Promise<void>;
}

export interface WorldOptions {
  dump?: Dump;
  /** Folder of the old version's code; required to start processes of the old version. */
  oldFolder?: string;
  /** Creates each database, in the order of `databases`. By default, they are created on the shared server. */
  createDatabase?: () => Promise<Pick<TestDatabase, 'url' | 'drop'>>;
}

/**
 * Milliseconds between the dump and the start. After this time, the leases that the dump's processes held have expired.
 */
const pause = 60_000;
const project = join(import.meta.dirname, '../..');
const log = pino({ level: 'silent' });

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const { dump, oldFolder, createDatabase = createTestDatabase } = options;
  let shift = dump ? Date.parse(dump.facts.madeAt) + pause - Date.now() : 0;
  let restoreTime = dump ? shiftTime(shift) : () => undefined;
  const folder = await mkdtemp(join(tmpdir(), 'formgate-upgrades-'));
  const [redis, mailbox, upstream, ...created] = await Promise.all([
    startTestRedis(),
    startTestMailbox(),
    startUpstream(),
    ...databases.map(() => createDatabase()),
  ]);
  const databaseUrls = byDatabase((index) => created[index]?.url ?? '');
  const pools = byDatabase((index) => connect(created[index]?.url ?? ''));
  if (dump) {
    for (const name of databases) await pools[name].query(dump.sql[name]);
    // Replace the connections, because the SQL of a dump leaves its connection with an empty search path.
    for (const name of databases) pools[name] = await reconnect(pools[name], databaseUrls[name]);
    await restoreRedis(redis, dump.redis);
  } else await migrate({ url: databaseUrls.access, directory: join(project, 'dev/access/migrations'), log });
  const store = createPostgresEntityStore(pools.access, systemClock);
  const access = await startTestAccess({ store, publicUrl: accessPublicUrl });
  const platformPort = await findFreePort();
  const platformUrl = `http://127.0.0.1:${platformPort}`;
  const seedFile = join(folder, 'seed.json');
  await writeFile(seedFile, JSON.stringify(seed(platformUrl, upstream.url)));
  const environment = environments({ databaseUrls, access, mailbox, redis, platformUrl, seedFile });
  const products: Product[] = [];
  const how = (version: Version) => {
    if (version === 'old' && oldFolder === undefined) throw new Error('This test does not run the old version.');
    return { version, shift, folder: version === 'old' ? (oldFolder ?? '') : project };
  };
  return {
    ...{ access, mailbox, redis, upstream, pools, databaseUrls, platformUrl },
    async start(service, version, env = {}) {
      const product = await startProduct(service, { ...how(version), env: { ...environment[service], ...env } });
      products.push(product);
      return product;
    },
    async reconcile(version) {
      await shiftPostgresTime(pools.forms, shift);
      const { reconciler: env } = environment;
      const url = new URL(env.DATABASE_URL ?? '');
      url.searchParams.set('options', '-c search_path=public,shifted,pg_catalog');
      return runReconciler({ ...how(version), env: { ...env, DATABASE_URL: url.href } });
    },
    advance(milliseconds) {
      restoreTime();
      shift += milliseconds;
      restoreTime = shiftTime(shift);
    },
    async close() {
      await Promise.all(products.map((product) => product.stop()));
      await Promise.all([...Object.values(pools).map((pool) => pool.end()), access.close(), mailbox.close()]);
      await Promise.all([redis.close(), upstream.close(), ...created.map((database) => database.drop())]);
      await rm(folder, { recursive: true, force: true });
      restoreTime();
    },
  };
}

/** Moves the clock of Postgres for connections whose search path names the schema `shifted` before `pg_catalog`. */
async function shiftPostgresTime(pool: pg.Pool, milliseconds: number): Promise<void> {
  await pool.query(`
    CREATE SCHEMA IF NOT EXISTS shifted;
    CREATE OR REPLACE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
      $$ SELECT pg_catalog.clock_timestamp() + interval '${milliseconds} milliseconds' $$`);
}

function byDatabase<T>(make: (index: number) => T): Record<keyof Dump['sql'], T> {
  return Object.fromEntries(databases.map((name, index) => [name, make(index)])) as Record<keyof Dump['sql'], T>;
}

function connect(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 3 });
  pool.on('error', () => undefined);
  return pool;
}

async function reconnect(pool: pg.Pool, url: string): Promise<pg.Pool> {
  await pool.end();
  return connect(url);
}

function seed(platformUrl: string, upstreamUrl: string): object {
  const paths = {
    'configuration-service:v2': '/configuration/v2',
    'tenant-service:v2': '/api/tenant/v2',
    'event-service:v1': '/event/v1',
    'notification-service:v1': '/subscription/v1',
    'directory-service:v2': '/directory/v2',
  };
  const own = Object.entries(paths).map(([service, path]) => ({
    ...{ namespace: 'platform', service, url: `${platformUrl}${path}` },
  }));
  return {
    tenants: [tenant],
    directory: [...own, { namespace: 'demo', service: 'api:v1', url: `${upstreamUrl}/base` }],
  };
}

interface Addresses extends Pick<World, 'databaseUrls' | 'access' | 'mailbox' | 'redis' | 'platformUrl'> {
  seedFile: string;
}

/** Returns the environment of each process, with only the variables that the old version knows. */
function environments(world: Addresses): Record<Service | 'reconciler', Record<string, string>> {
  const { access, databaseUrls, platformUrl } = world;
  const common = { LOG_LEVEL: 'debug', URN_PREFIX: access.urns.prefix };
  const provider = { ACCESS_SERVICE_URL: access.url, ACCESS_SERVICE_PUBLIC_URL: accessPublicUrl };
  const directory = { DIRECTORY_URL: `${platformUrl}/directory/v2` };
  const secretOf = (service: string) => ({ CLIENT_SECRET: testServiceSecret(access.urns.service(service)) });
  return {
    'platform-server': {
      ...{ ...common, ...provider, DATABASE_URL: databaseUrls.platform, CODE_KEY: codeKey, SEED_FILE: world.seedFile },
      ...{
        PORT: new URL(platformUrl).port,
        SMTP_URL: world.mailbox.url,
        MAIL_FROM: 'Forms <forms@platform.example.org>',
      },
    },
    forms: {
      ...{ ...common, ...provider, ...directory, ...secretOf('form-service') },
      ...{ DATABASE_URL: databaseUrls.forms, CODE_KEY: codeKey },
    },
    'token-handler': {
      ...{ ...common, ...provider, ...directory, ...secretOf('token-handler') },
      ...{ DATABASE_URL: databaseUrls.tokenHandler, KEY_RING: keyRing, REDIS_URL: world.redis.url, PUBLIC_URL: site },
      ...{ PLATFORM_CACHE_TTL: 'PT0.05S', SIGN_IN_LIMIT: '100000' },
    },
    reconciler: {
      ...{ ...common, ...provider, ...directory, ...secretOf('form-service') },
      ...{ DATABASE_URL: databaseUrls.forms, CORE_CLIENTS: 'off' },
    },
  };
}
