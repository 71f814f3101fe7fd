// A whole token handler for a test: a platform with a real identity provider, a database, and the service in this
// process, composed as in its main module.
import { randomBytes } from 'node:crypto';
import type { Tenant } from '../../src/service/auth/identity.ts';
import type { Clock } from '../../src/service/clock.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { configSchema, type TokenHandlerConfig } from '../../src/token-handler/config.ts';
import { migrationsDirectory, type StartOptions, startTokenHandler } from '../../src/token-handler/start.ts';
import { testServiceSecret } from './access.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';
import { type Answered, call, roleToken, startTestPlatform, type TestPlatform } from './platform.ts';
import { createTestDatabase } from './postgres.ts';
import { readAgain } from './read-again.ts';

const cacheLifetime = 'PT0.05S';

/** The initial access token of the embedded identity provider's realms. */
export const registrationToken = 'demo-registration-token';

export interface TestTokenHandler {
  platform: TestPlatform;
  /** The tenant of the realm `demo`. */
  tenant: Tenant;
  /** Base URL of the service, without a path. */
  url: string;
  metricsUrl: string;
  databaseUrl: string;
  config: TokenHandlerConfig;
  env: Record<string, string>;
  log: CapturedLog;
  /** Returns a token of a token-handler-admin in a realm; `demo` by default. */
  adminToken(realm?: string): Promise<string>;
  /** Sends one request below /token-handler/v1. */
  api(path: string, options?: Parameters<typeof call>[1]): Promise<Answered>;
  /**
   * Replaces the clients of the tenant, or of core, in the configuration, and waits until the service has read them.
   */
  configure(clients: Record<string, unknown>, place?: { core: true } | { tenant: Tenant }): Promise<void>;
  /** Registers a configured client through the API. */
  register(clientId: string, options?: { authCallbackUrl?: string; realm?: string }): Promise<Answered>;
  /** Queries the token handler's database. */
  rows<Row extends object>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  /** Starts another replica on the same database. */
  startReplica(options?: ReplicaOptions): Promise<RunningService>;
  close(): Promise<void>;
}

export interface ReplicaOptions {
  env?: Record<string, string>;
  clock?: Clock;
  pace?: StartOptions['pace'];
  startup?: StartOptions['startup'];
  log?: CapturedLog;
}

export interface TestTokenHandlerOptions extends ReplicaOptions {
  /** The platform to use instead of a new one. The caller closes it. */
  platform?: TestPlatform;
  /**
   * Addresses at which the token handler calls the identity provider and the directory, such as a proxy that breaks
   * calls.
   */
  accessUrl?: string;
  directoryUrl?: string;
  /**
   * Environment variables `DIR_…`, which override addresses of the directory. A value may be the address of a proxy
   * that breaks calls to one service.
   */
  directory?: Record<string, string>;
}

export async function startTestTokenHandler(options: TestTokenHandlerOptions = {}): Promise<TestTokenHandler> {
  const [platform, database] = await Promise.all([
    options.platform ?? startTestPlatform({ ...(options.clock && { clock: options.clock }) }),
    createTestDatabase(migrationsDirectory),
  ]);
  const { access, tenant } = platform;
  const env: Record<string, string> = {
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'debug',
    URN_PREFIX: access.urns.prefix,
    ACCESS_SERVICE_URL: options.accessUrl ?? access.url,
    ACCESS_SERVICE_PUBLIC_URL: access.url,
    DATABASE_URL: database.url,
    DIRECTORY_URL: options.directoryUrl ?? platform.directoryUrl,
    CLIENT_SECRET: testServiceSecret(access.urns.service('token-handler')),
    // The caches have a short lifetime, so that the service soon reads what a test configures.
    PLATFORM_CACHE_TTL: cacheLifetime,
    KEY_RING: `test:${randomBytes(32).toString('base64')}`,
    DRAIN_DEADLINE: 'PT2S',
    SESSION_STORE: options.env?.REDIS_URL === undefined ? 'memory' : 'redis',
    ...options.env,
  };
  const log = options.log ?? captureLog();
  const start = (replica: ReplicaOptions = {}) => {
    const config = parseConfig(configSchema, { ...env, ...replica.env });
    const { clock, pace, startup = {} } = { ...options, ...replica };
    const times = { poll: 50, firstRetry: 50, longestRetry: 200, ...pace };
    return startTokenHandler({
      config,
      log: (replica.log ?? log).log,
      env: options.directory ?? {},
      ...(clock && { clock }),
      pace: times,
      startup,
    });
  };
  const running = await start();
  const api: TestTokenHandler['api'] = (path, request) => call(`${running.url}/token-handler/v1${path}`, request);
  const adminToken = (realm = 'demo') =>
    roleToken(access, { 'token-handler': ['token-handler-admin'] }, { realm, claims: { name: 'Ada Admin' } });
  return {
    platform,
    tenant,
    url: running.url,
    metricsUrl: running.metricsUrl,
    databaseUrl: database.url,
    config: parseConfig(configSchema, env),
    env,
    log,
    api,
    adminToken,
    async configure(clients, place = { tenant }) {
      const token = await adminToken('tenant' in place ? place.tenant.realm : undefined);
      await configure(platform, clients, place);
      // A test that sets another cache lifetime must itself wait until the service has read the change.
      if (env.PLATFORM_CACHE_TTL !== cacheLifetime) return;
      // Each request reads two documents, of core and of the tenant. The first two calls may have begun before the
      // change.
      const ask = () => api('/clients', { token });
      await readAgain({ metricsUrl: running.metricsUrl, dependency: 'configuration', calls: 4, ask });
    },
    async register(clientId, { authCallbackUrl, realm } = {}) {
      const registrationToken = await access.registrationToken(realm ?? 'demo');
      const body = { registrationToken, ...(authCallbackUrl !== undefined && { authCallbackUrl }) };
      const token = await adminToken(realm);
      return api(`/clients/${encodeURIComponent(clientId)}`, { method: 'POST', token, body });
    },
    rows: async <Row extends object>(sql: string, parameters: unknown[] = []) =>
      (await database.pool.query<Row>(sql, parameters)).rows,
    startReplica: start,
    async close() {
      await running.close();
      await Promise.all([database.drop(), options.platform ? undefined : platform.close()]);
    },
  };
}

async function configure(
  platform: TestPlatform,
  clients: Record<string, unknown>,
  place: { core: true } | { tenant: Tenant },
): Promise<void> {
  const url = new URL(`${platform.url}/configuration/v2/configuration/platform/token-handler`);
  if ('tenant' in place) url.searchParams.set('tenantId', place.tenant.id);
  const answered = await call(url.href, {
    method: 'PATCH',
    token: await roleToken(platform.access, { 'configuration-service': ['configured-service'] }),
    body: { operation: 'REPLACE', configuration: { clients } },
  });
  if (answered.status !== 200) throw new Error(`configuration: ${answered.status} ${answered.text}`);
}
