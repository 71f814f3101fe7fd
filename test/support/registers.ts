// The register API in front of a configuration service: the platform server of this repository in this process, or a
// real one that the environment names, so that the same suites run against either:
//   REGISTER_SUITE_CONFIGURATION_URL  the API's base, such as https://configuration.example.org/configuration/v2
//   REGISTER_SUITE_ACCESS_URL         its access service, such as https://access.example.org/auth
//   REGISTER_SUITE_CLIENT_ID, REGISTER_SUITE_CLIENT_SECRET
//                                     a service account in realm core with configured-service and configuration-admin
//   REGISTER_SUITE_TENANT             URN of a tenant for the suites
//   REGISTER_SUITE_OTHER_TENANT       URN of another one, which is only read
//   REGISTER_SUITE_URN_PREFIX         if it is not urn:example
// Callers of the API always come from an access service of the test's own. Registers get names that nobody else uses,
// and `close` removes them.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type RegisterOptions, registerRoutes } from '../../src/forms/registers/routes.ts';
import { cacheTimes } from '../../src/platform/cache.ts';
import { type Configuration, createConfiguration } from '../../src/platform/configuration.ts';
import { createPlatformClient } from '../../src/platform/http-client.ts';
import { createHttpAgent } from '../../src/platform/http-exchange.ts';
import { createPlatformMetrics } from '../../src/platform/platform-metrics.ts';
import { createServiceAccount } from '../../src/platform/service-account.ts';
import { type Clock, systemClock } from '../../src/service/clock.ts';
import { createBearerVerifier, type Tenant, type Tenants } from '../../src/service/identity.ts';
import { createMetrics } from '../../src/service/metrics.ts';
import { createPool } from '../../src/service/postgres.ts';
import { startTestAccess, type TestAccess, testServiceSecret } from './access.ts';
import { captureLog } from './captured-log.ts';
import { startApp } from './listening-app.ts';
import { type Answered, call, roleToken, startTestPlatform } from './platform.ts';
import { createTestDatabase } from './postgres.ts';

export interface RegisterBackend {
  /** Base of the configuration API. */
  configurationUrl: string;
  /** Issues the tokens of the API's callers. */
  access: TestAccess;
  tenant: Tenant;
  otherTenant: Tenant;
  /** By the service's own account, past the API: to look into what is stored, and to bring it about. */
  configuration: Configuration;
  /** Starts a replica of the API. All of them lock on one database, `lockUrl`. */
  start(options?: ReplicaOptions): Promise<Replica>;
  lockUrl: string;
  /** A name that no other test has; it is removed in the end. */
  newName(): string;
  close(): Promise<void>;
}

export interface ReplicaOptions extends Partial<RegisterOptions> {
  /** Instead of the real base: that of a proxy. */
  configurationUrl?: string;
  /** Milliseconds for one call to the configuration service. */
  timeoutMs?: number;
  clock?: Clock;
  trustedProxies?: number;
  bodyLimit?: number;
}

export interface Replica {
  url: string;
  configuration: Configuration;
  pool: pg.Pool;
  /** What its log says so far. */
  logText(): string;
  /** A request below `/form/v1/registers`, by an administrator of the tenant unless told; `token: null` for none. */
  request(
    method: string,
    path: string,
    options?: { token?: string | null; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answered>;
  close(): Promise<void>;
}

const { env } = process;

export async function startRegisterBackend(): Promise<RegisterBackend> {
  const real = env.REGISTER_SUITE_CONFIGURATION_URL;
  const urnPrefix = env.REGISTER_SUITE_URN_PREFIX ?? 'urn:example';
  const access = await startTestAccess({ urnPrefix });
  await access.addRealm('other');
  const platform = real === undefined ? await startTestPlatform({ access }) : undefined;
  const database = await createTestDatabase();
  const tenantOf = (id: string | undefined, realm: string): Tenant => ({ id: id ?? '', name: realm, realm });
  const tenant = platform?.tenant ?? tenantOf(env.REGISTER_SUITE_TENANT, 'demo');
  const otherTenant = platform?.otherTenant ?? tenantOf(env.REGISTER_SUITE_OTHER_TENANT, 'other');
  const configurationUrl = real ?? `${platform?.url}/configuration/v2`;
  const accountUrl = env.REGISTER_SUITE_ACCESS_URL ?? access.url;
  const connect = (options: ConnectionOptions) => connectConfiguration({ accountUrl, access, ...options });
  const own = connect({ url: configurationUrl });
  const replicas = new Set<Replica>();
  const names: string[] = [];

  async function start(options: ReplicaOptions = {}): Promise<Replica> {
    const connection = connect({ url: options.configurationUrl ?? configurationUrl, ...options });
    const replica = await startReplica(
      { access, tenants: [tenant, otherTenant], connection, lockUrl: database.url },
      options,
    );
    replicas.add(replica);
    return {
      ...replica,
      async close() {
        if (replicas.delete(replica)) await replica.close();
      },
    };
  }

  return {
    configurationUrl,
    access,
    tenant,
    otherTenant,
    configuration: own.configuration,
    start,
    lockUrl: database.url,
    newName() {
      const name = `test ${randomUUID()}`.slice(0, 36);
      names.push(name);
      return name;
    },
    async close() {
      await Promise.all([...replicas].map((replica) => replica.close()));
      // A platform of our own goes as a whole.
      if (!platform) await removeAll(own.configuration, [tenant, otherTenant], names);
      await own.close();
      await platform?.close();
      await access.close();
      await database.drop();
    },
  };
}

async function removeAll(configuration: Configuration, tenants: Tenant[], names: string[]): Promise<void> {
  for (const { id: tenantId } of tenants.filter(({ id }) => id !== ''))
    for (const name of names) {
      await configuration.deleteProperty('platform', 'configuration-service', `data-register:${name}`, { tenantId });
      await configuration.remove('data-register', name, { tenantId });
    }
}

interface ConnectionOptions {
  url: string;
  timeoutMs?: number | undefined;
  clock?: Clock | undefined;
}

interface Connection {
  configuration: Configuration;
  close(): Promise<void>;
}

function connectConfiguration(options: ConnectionOptions & { accountUrl: string; access: TestAccess }): Connection {
  const { clock = systemClock, timeoutMs = 10_000 } = options;
  const agent = createHttpAgent();
  const { log } = captureLog();
  const metrics = createPlatformMetrics(createMetrics());
  const common = { agent, log, metrics, clock, timeoutMs, retryDelayMs: 2, circuitResetMs: 300 };
  const clientId = env.REGISTER_SUITE_CLIENT_ID ?? options.access.urns.service('form-service');
  const clientSecret = env.REGISTER_SUITE_CLIENT_SECRET ?? testServiceSecret(clientId);
  // Not the limit of the calls under test: a sign-in takes the time that it takes.
  const account = createServiceAccount({
    ...common,
    timeoutMs: 10_000,
    accessUrl: options.accountUrl,
    clientId,
    clientSecret,
  });
  const client = createPlatformClient({
    ...common,
    service: 'configuration',
    account,
    baseUrl: async () => options.url,
  });
  return {
    configuration: createConfiguration({ client, clock, times: cacheTimes(), metrics, log }),
    async close() {
      client.close();
      account.close();
      await agent.destroy();
    },
  };
}

interface ReplicaParts {
  access: TestAccess;
  tenants: Tenant[];
  connection: Connection;
  lockUrl: string;
}

async function startReplica(
  { access, connection, lockUrl, ...parts }: ReplicaParts,
  options: ReplicaOptions,
): Promise<Replica> {
  const { urns, url: accessUrl } = access;
  const find = async (match: (tenant: Tenant) => boolean) => parts.tenants.find(match);
  const tenants: Tenants = {
    byRealm: (realm) => find((tenant) => tenant.realm === realm),
    byId: (id) => find((tenant) => tenant.id === id),
    byName: (name) => find((tenant) => tenant.name === name),
  };
  const { log, text } = captureLog();
  const metrics = createMetrics();
  const clientId = urns.service('form-service');
  const verifier = createBearerVerifier({ accessUrl, accessPublicUrl: accessUrl, tenants, clientId, log, metrics });
  const pool = createPool({ url: lockUrl, size: 6, log, metrics });
  const {
    timeoutMs,
    configurationUrl: _url,
    clock: _clock,
    trustedProxies = 0,
    bodyLimit = 1_048_576,
    ...rest
  } = options;
  const { configuration } = connection;
  const stepMs = timeoutMs === undefined ? {} : { stepMs: timeoutMs };
  const anonymousReads = { reads: 300, seconds: 60 };
  const routes = registerRoutes({ verifier, tenants, urns, configuration, pool, anonymousReads, ...stepMs, ...rest });
  const app = await startApp(routes, { trustedProxies, bodyLimit });
  const admin = await roleToken(access, { 'form-service': ['form-admin'] }, { realm: 'demo' });
  return {
    url: app.url,
    configuration,
    pool,
    logText: () => text() + app.text(),
    request: (method, path, { token, ...request } = {}) =>
      call(`${app.url}/form/v1/registers${path}`, {
        ...request,
        method,
        token: token === null ? undefined : (token ?? admin),
      }),
    async close() {
      await app.close();
      await pool.end();
      await connection.close();
    },
  };
}
