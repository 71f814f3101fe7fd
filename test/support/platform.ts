// A whole platform for a test, all in this process: the identity provider, a mail server, and the platform server with
// its own database.
import pino from 'pino';
import type { PlatformServerConfig } from '../../src/platform-server/config.ts';
import { configSchema } from '../../src/platform-server/config.ts';
import { applySeed } from '../../src/platform-server/seed.ts';
import { migrationsDirectory, startPlatformServer } from '../../src/platform-server/start.ts';
import type { Tenant } from '../../src/service/auth/identity.ts';
import { type Clock, systemClock } from '../../src/service/clock.ts';
import { jsonOrUndefined } from '../../src/service/json-value.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';
import { startTestAccess, type TestAccess } from './access.ts';
import { startTestMailbox, type TestMailbox } from './mailbox.ts';
import { behaviourOfRun } from './platform-behaviour.ts';
import { createTestDatabase } from './postgres.ts';

export interface TestPlatform {
  /** URL of the platform server; the paths of all services are below it. */
  url: string;
  metricsUrl: string;
  /** Value of DIRECTORY_URL for a process under test. */
  directoryUrl: string;
  databaseUrl: string;
  /** The platform server's environment. */
  env: Record<string, string>;
  access: TestAccess;
  mailbox: TestMailbox;
  /** The tenant of the realm `demo`. */
  tenant: Tenant;
  /** The tenant of the realm `other`, which has the same people and clients. */
  otherTenant: Tenant;
  close(): Promise<void>;
}

export interface TestPlatformOptions {
  clock?: Clock;
  log?: Logger;
  /** `access` and `mailbox` are used instead of new ones. The caller closes them. */
  access?: TestAccess;
  mailbox?: TestMailbox;
  /** Seconds for which tokens of service accounts are valid. */
  coreTokenLifetime?: number;
  /** `host:port` at which the platform server reaches Postgres, such as a proxy that the test controls. */
  databaseVia?: string;
  /** Environment variables that differ from the defaults. */
  env?: Record<string, string>;
}

const tenantSeeds = [
  { id: '65f0c2a9e4b0a1d2c3f4a5b6', name: 'Demo', realm: 'demo', adminEmail: 'admin@example.com' },
  { id: '65f0c2a9e4b0a1d2c3f4a5b7', name: 'Other Town', realm: 'other', adminEmail: 'admin@other.example.com' },
];

/** Paths of the APIs, keyed by their names in the directory. */
const apis = {
  'configuration-service:v2': '/configuration/v2',
  'tenant-service:v2': '/api/tenant/v2',
  'event-service:v1': '/event/v1',
  'notification-service:v1': '/subscription/v1',
  'directory-service:v2': '/directory/v2',
};

export async function startTestPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  const { clock = systemClock, log = pino({ level: 'silent' }) } = options;
  const [access, mailbox, database] = await Promise.all([
    options.access ?? startAccessForTwo(options.coreTokenLifetime),
    options.mailbox ?? startTestMailbox(),
    createTestDatabase(migrationsDirectory),
  ]);
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: via(database.url, options.databaseVia),
    ACCESS_SERVICE_URL: access.url,
    SMTP_URL: mailbox.url,
    MAIL_FROM: 'Forms <forms@platform.example.org>',
    CODE_KEY: 'a key of tests with more than 32 characters',
    URN_PREFIX: access.urns.prefix,
    ...behaviourOfRun,
    ...options.env,
  };
  const config: PlatformServerConfig = parseConfig(configSchema, env);
  const running = await startPlatformServer({ config, log, clock, env });
  await seed(database.url, running.url, log);
  const tenantOf = (index: 0 | 1): Tenant => {
    const { id, name, realm } = tenantSeeds[index] as (typeof tenantSeeds)[number];
    return { id: access.urns.tenant(id), name, realm };
  };
  return {
    url: running.url,
    metricsUrl: running.metricsUrl,
    directoryUrl: `${running.url}/directory/v2`,
    databaseUrl: database.url,
    env,
    access,
    mailbox,
    tenant: tenantOf(0),
    otherTenant: tenantOf(1),
    async close() {
      await running.close();
      await Promise.all([
        options.access ? undefined : access.close(),
        options.mailbox ? undefined : mailbox.close(),
        database.drop(),
      ]);
    },
  };
}

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  body: unknown;
}

/**
 * Issues a token with exactly the roles in `roles`, keyed by service. Each service is in the token's audience. The
 * realm is `core` by default.
 */
export function roleToken(
  access: TestAccess,
  roles: Record<string, string[]>,
  options: { realm?: string; realmRoles?: string[]; audience?: string[]; claims?: Record<string, unknown> } = {},
): Promise<string> {
  const clients = Object.keys(roles).map((service) => access.urns.service(service));
  const entries = Object.entries(roles).map(([service, list]) => [access.urns.service(service), { roles: list }]);
  const claims = {
    aud: options.audience ?? clients,
    resource_access: Object.fromEntries(entries),
    realm_access: { roles: options.realmRoles ?? [] },
    ...options.claims,
  };
  return access.foreignToken(claims, { realm: options.realm ?? 'core' });
}

/** Sends one request and reads the whole response. Sends `body` as JSON unless it is a string. */
export async function call(
  url: string,
  options: { method?: string; token?: string | undefined; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answered> {
  const { method = 'GET', token, body, headers } = options;
  const response = await fetch(url, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: jsonOrUndefined(text) };
}

async function startAccessForTwo(coreTokenLifetime?: number): Promise<TestAccess> {
  const access = await startTestAccess(coreTokenLifetime === undefined ? {} : { coreTokenLifetime });
  await access.addRealm('other');
  return access;
}

function via(databaseUrl: string, host: string | undefined): string {
  const url = new URL(databaseUrl);
  if (host !== undefined) url.host = host;
  return url.href;
}

/**
 * Stores the tenants and the directory. Runs after the server has begun to listen, because the directory's entries
 * contain its port.
 */
async function seed(databaseUrl: string, url: string, log: Logger): Promise<void> {
  const pool = createPool({ url: databaseUrl, size: 1, log, metrics: createMetrics() });
  try {
    const directory = Object.entries(apis).map(([service, path]) => ({
      namespace: 'platform',
      service,
      url: `${url}${path}`,
    }));
    await applySeed(pool, { tenants: tenantSeeds, directory });
  } finally {
    await pool.end();
  }
}
