// The register API in front of a configuration service. The service is this repository's platform server, or the public
// platform's service that these variables name, so that the same suites run against both:
//
// - REGISTER_SUITE_CONFIGURATION_URL: base URL of the API, such as https://configuration.example.org/configuration/v2
// - REGISTER_SUITE_ACCESS_URL: its identity provider, such as https://access.example.org/auth
// - REGISTER_SUITE_CLIENT_ID, REGISTER_SUITE_CLIENT_SECRET: a service account in realm core with configured-service and
//   configuration-admin
// - REGISTER_SUITE_TENANT: URN of a tenant for the suites
// - REGISTER_SUITE_OTHER_TENANT: URN of another tenant, which is only read
// - REGISTER_SUITE_URN_PREFIX: the platform's prefix of URNs, if it is not urn:example
//
// The tokens of the API's callers always come from the test's own identity provider. Registers get unique names, and
// `close` removes them. `npm run test:registers` runs the files one after another, because they share the registers of
// one tenant.
//
// The public platform's service loses one of two concurrent edits of a document, and one document contains the
// definitions of all registers. Tests therefore prepare their registers one after another. Only tests that change
// different registers concurrently on purpose may lose an edit.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createRegisterChanges } from '../../src/forms/registers/changes.ts';
import { createEntryEdits } from '../../src/forms/registers/entry-edits.ts';
import { createRegisterGuards, type RegisterPolicyOptions } from '../../src/forms/registers/policy.ts';
import { createRegisterReferences } from '../../src/forms/registers/references.ts';
import { createRegisterLock, type RegisterLockOptions } from '../../src/forms/registers/register-lock.ts';
import { registerRoutes } from '../../src/forms/registers/routes.ts';
import { createRegisterStore } from '../../src/forms/registers/store.ts';
import type { Configuration } from '../../src/platform/configuration.ts';
import { createBearerVerifier, type Tenant, type Tenants } from '../../src/service/auth/identity.ts';
import { createSigningKeys } from '../../src/service/auth/signing-keys.ts';
import { createKeysUrl } from '../../src/service/auth/tenant-issuers.ts';
import { type Clock, systemClock } from '../../src/service/clock.ts';
import type { Route } from '../../src/service/http/http-app.ts';
import { createRateLimits } from '../../src/service/limits/rate-limit.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';
import { startTestAccess, type TestAccess, testServiceSecret } from './access.ts';
import { captureLog } from './captured-log.ts';
import {
  type Account,
  type Connection,
  type ConnectionOptions,
  connectConfiguration,
} from './configuration-connection.ts';
import { startApp } from './listening-app.ts';
import { type Answered, call, roleToken, startTestPlatform } from './platform.ts';
import { createTestDatabase } from './postgres.ts';
import type { Revisions } from './revisions.ts';

export interface RegisterBackend {
  /** Base URL of the configuration API. */
  configurationUrl: string;
  /** Issues the tokens of the API's callers. */
  access: TestAccess;
  tenant: Tenant;
  otherTenant: Tenant;
  /** Reads and writes the stored configuration directly, with the service account and without the register API. */
  configuration: Configuration;
  /** Calls of the configuration service that only tests need. They use the service account. */
  revisions: Revisions;
  /** Starts a replica of the API. All replicas take their locks in one database, `lockUrl`. */
  start(options?: ReplicaOptions): Promise<Replica>;
  lockUrl: string;
  /** Returns a unique name for a register. `close` removes the register. */
  newName(): string;
  close(): Promise<void>;
}

export interface ReplicaOptions extends Partial<Omit<RegisterPolicyOptions & RegisterLockOptions, 'anonymousReads'>> {
  /** One IP address may make `reads` reads without a token in `seconds` seconds. */
  anonymousReads?: { reads: number; seconds: number };
  /** Base URL of the configuration API to use instead of the real one, such as the URL of a proxy. */
  configurationUrl?: string;
  /** Timeout of one call to the configuration service, in milliseconds. */
  timeoutMs?: number;
  clock?: Clock;
  trustedProxies?: number;
  bodyLimit?: number;
}

export interface Replica {
  url: string;
  routes: Route[];
  configuration: Configuration;
  pool: pg.Pool;
  /** Returns the text of the replica's log so far. */
  logText(): string;
  /**
   * Sends a request below `/form/v1/registers`, by default with the token of an administrator of the tenant. With
   * `token: null`, sends no token.
   */
  request(
    method: string,
    path: string,
    options?: { token?: string | null; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answered>;
  close(): Promise<void>;
}

export interface ListedPage {
  results: { namespace: string; name: string; description: string; entries: unknown[] }[];
  page: { after: string | null; next: string | null; size: number };
}

/** Reads the whole list of the tenant's registers, page by page. Throws if a response is not a page. */
export async function listPages(replica: Pick<Replica, 'request'>, top = 100): Promise<ListedPage[]> {
  const pages: ListedPage[] = [];
  for (let after = ''; ; ) {
    const { status, text, body } = await replica.request('GET', `?top=${top}${after}`);
    if (status !== 200) throw new Error(`The list was not answered: ${status} ${text}`);
    const page = body as ListedPage;
    pages.push(page);
    if (page.page.next === null) return pages;
    after = `&after=${page.page.next}`;
  }
}

/** Returns the settings of the real platform that the environment names; undefined if it names none. */
function realPlatform() {
  const { env } = process;
  const url = env.REGISTER_SUITE_CONFIGURATION_URL;
  if (url === undefined) return undefined;
  return {
    url,
    accessUrl: env.REGISTER_SUITE_ACCESS_URL,
    clientId: env.REGISTER_SUITE_CLIENT_ID,
    clientSecret: env.REGISTER_SUITE_CLIENT_SECRET,
    tenant: env.REGISTER_SUITE_TENANT,
    otherTenant: env.REGISTER_SUITE_OTHER_TENANT,
    urnPrefix: env.REGISTER_SUITE_URN_PREFIX,
  };
}

/**
 * Starts everything that the register API needs. If `urnPrefix` is given, uses this repository's platform server, even
 * if the environment names a real platform.
 */
export async function startRegisterBackend(options: { urnPrefix?: string } = {}): Promise<RegisterBackend> {
  const real = options.urnPrefix === undefined ? realPlatform() : undefined;
  const urnPrefix = options.urnPrefix ?? real?.urnPrefix ?? 'urn:example';
  const access = await startTestAccess({ urnPrefix });
  await access.addRealm('other');
  const platform = real === undefined ? await startTestPlatform({ access }) : undefined;
  const database = await createTestDatabase();
  const tenantOf = (id: string | undefined, realm: string): Tenant => ({ id: id ?? '', name: realm, realm });
  const tenant = platform?.tenant ?? tenantOf(real?.tenant, 'demo');
  const otherTenant = platform?.otherTenant ?? tenantOf(real?.otherTenant, 'other');
  const configurationUrl = real?.url ?? `${platform?.url}/configuration/v2`;
  const clientId = real?.clientId ?? access.urns.service('form-service');
  const account: Account = {
    accessUrl: real?.accessUrl ?? access.url,
    clientId,
    clientSecret: real?.clientSecret ?? testServiceSecret(clientId),
  };
  const connect = (connection: ConnectionOptions) => connectConfiguration(account, connection);
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
    revisions: own.revisions,
    start,
    lockUrl: database.url,
    newName() {
      const name = `test ${randomUUID()}`.slice(0, 36);
      names.push(name);
      return name;
    },
    async close() {
      await Promise.all([...replicas].map((replica) => replica.close()));
      // The embedded platform is thrown away with its database. A real platform has to be cleaned up.
      if (!platform) await removeAll(own.configuration, [tenant, otherTenant], names);
      await own.close();
      await platform?.close();
      await access.close();
      await database.drop();
    },
  };
}

/**
 * Removes the registers, as far as they exist. Removes their definitions one after another, because these are
 * properties of one document.
 */
async function removeAll(configuration: Configuration, tenants: Tenant[], names: string[]): Promise<void> {
  for (const { id: tenantId } of tenants.filter(({ id }) => id !== '')) {
    const { latest } = await configuration.read('platform', 'configuration-service', { tenantId });
    const defined = new Set(Object.keys(latest?.configuration ?? {}));
    for (const name of names)
      if (defined.has(`data-register:${name}`))
        await configuration.deleteProperty('platform', 'configuration-service', `data-register:${name}`, { tenantId });
    for (let start = 0; start < names.length; start += 8)
      await Promise.all(
        names.slice(start, start + 8).map((name) => configuration.remove('data-register', name, { tenantId })),
      );
  }
}

interface ReplicaParts {
  access: TestAccess;
  tenants: Tenant[];
  connection: Connection;
  lockUrl: string;
}

async function startReplica(
  { access, connection, lockUrl, ...known }: ReplicaParts,
  options: ReplicaOptions,
): Promise<Replica> {
  const { urns, url: accessUrl } = access;
  const find = async (match: (tenant: Tenant) => boolean) => known.tenants.find(match);
  const tenants: Tenants = {
    byRealm: (realm) => find((tenant) => tenant.realm === realm),
    byId: (id) => find((tenant) => tenant.id === id),
    byName: (name) => find((tenant) => tenant.name === name),
  };
  const { log, text } = captureLog();
  const metrics = createMetrics();
  const clientId = urns.service('form-service');
  const signingKeys = createSigningKeys({ urlOf: createKeysUrl(accessUrl), log, metrics });
  const verifier = createBearerVerifier({ signingKeys, accessPublicUrl: accessUrl, tenants, clientId });
  const pool = createPool({ url: lockUrl, size: 6, log, metrics });
  const {
    timeoutMs,
    configurationUrl: _url,
    clock = systemClock,
    anonymousReads: { reads: most, seconds } = { reads: 300, seconds: 60 },
    trustedProxies = 0,
    bodyLimit = 1_048_576,
    ...rest
  } = options;
  const { configuration } = connection;
  const stepMs = timeoutMs === undefined ? {} : { stepMs: timeoutMs };
  const limits = createRateLimits({ clock, log, metrics });
  const anonymousReads = limits.local({ name: 'anonymous-reads', most, window: seconds * 1_000 });
  const guards = createRegisterGuards({ verifier, tenants, urns, anonymousReads, ...rest });
  const store = createRegisterStore(configuration);
  const changing = { store, hold: createRegisterLock({ pool, metrics, ...stepMs, ...rest }) };
  const [changes, edits] = [createRegisterChanges(changing), createEntryEdits(changing)];
  const references = createRegisterReferences({ configuration, store, urns, metrics });
  const routes = registerRoutes({ ...guards, store, changes, edits, urns, references });
  const app = await startApp(routes, { trustedProxies, bodyLimit });
  const admin = await roleToken(access, { 'form-service': ['form-admin'] }, { realm: 'demo' });
  return {
    url: app.url,
    routes,
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
