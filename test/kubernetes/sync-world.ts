// Prepares everything that a sync of core clients needs: a namespace in a real cluster, and a platform with the
// configuration definitions of the token handler.
import { findCluster } from '../../reconciler/core-clients/cluster.ts';
import { recordName } from '../../reconciler/core-clients/document.ts';
import { type ClientsOutcome, createClientSync } from '../../reconciler/core-clients/sync.ts';
import { createPlatform, type Platform } from '../../src/platform/platform.ts';
import { maintainedClients } from '../../src/service/clients/client-rules.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { registered } from '../../src/token-handler/platform-registration.ts';
import { testServiceSecret } from '../support/access.ts';
import { type CapturedLog, captureLog } from '../support/captured-log.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { noRefusals } from '../support/no-refusals.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { type Lab, startLab } from './lab.ts';

export interface SyncSettings {
  dryRun?: boolean;
  allowPrune?: boolean;
  builderUrl?: string;
  allowInsecureRedirectUris?: boolean;
  /** Time limit of a request to the API server, in milliseconds. */
  timeout?: number;
  pageSize?: number;
  owner?: string;
  renewLease?: () => Promise<void>;
  signal?: AbortSignal;
  /**
   * Path of the kubeconfig to use instead of the one for the reconciler's account; an empty string means no Kubernetes.
   */
  kubeconfig?: string;
}

export interface Synced extends ClientsOutcome {
  log: CapturedLog;
  /** Writes to the configuration service in order, such as `PATCH token-handler`. */
  writes: string[];
  /** Writes to the API server in order, such as `PATCH coreclients/<name>/status` and `POST events`. */
  clusterWrites: string[];
  milliseconds: number;
  /** Processor time of this process, which also serves the platform and the proxies, in milliseconds. */
  busy: number;
}

export interface SyncWorld {
  lab: Lab;
  test: TestPlatform;
  platform: Platform;
  /** The fault proxy in front of the configuration service. */
  configurationProxy: FaultProxy;
  sync(settings?: SyncSettings): Promise<Synced>;
  /** Returns the property `clients` of the core configuration. */
  clients(): Promise<Record<string, Record<string, unknown>>>;
  /**
   * Replaces the token handler's whole configuration as an administrator would: the tenant's configuration or, without
   * `tenantId`, the core configuration.
   */
  configure(configuration: unknown, tenantId?: string): Promise<void>;
  /** Replaces the definition of core clients at the configuration service, possibly with a stricter one. */
  define(rules: { maxDescription?: number }): Promise<void>;
  /**
   * Returns the client ids that belong to the owner according to the sync's record
   * (reconciler/core-clients/document.ts).
   */
  owned(owner?: string): Promise<string[]>;
  /** Removes all CoreClients, and empties the core configuration and the sync's record. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** The part of the definition that tests change. */
interface CoreDefinition {
  configurationSchema: {
    properties: { clients: { additionalProperties: { properties: Record<string, unknown> } } };
  };
}

const knownUpstreams = ['DIR_PLATFORM_FORM_SERVICE', 'DIR_PLATFORM_FILE_SERVICE'];
const configurationPath = '/configuration/v2/configuration/platform';

export async function startSyncWorld(): Promise<SyncWorld> {
  const [lab, test] = await Promise.all([startLab(), startTestPlatform()]);
  const proxy = await startFaultProxy(test.url);
  const service = 'token-handler';
  const { urns } = test.access;
  const platform = createPlatform({
    config: {
      ACCESS_SERVICE_URL: test.access.url,
      DIRECTORY_URL: test.directoryUrl,
      CLIENT_SECRET: testServiceSecret(urns.service(service)),
      PLATFORM_CACHE_TTL: 60_000,
      PLATFORM_TIMEOUT: 5_000,
    },
    service,
    urns,
    metrics: createMetrics(),
    log: captureLog().log,
    env: {
      DIR_PLATFORM_CONFIGURATION_SERVICE_V2: `${proxy.url}/configuration/v2`,
      // Upstreams that the example CoreClients name. No test calls them.
      ...Object.fromEntries(knownUpstreams.map((name) => [name, 'http://upstream.example.org'])),
    },
  });
  await platform.register(registered).done;

  const administer = async (method: string, name: string, body?: unknown, tenantId?: string) => {
    const roles = { 'configuration-service': ['configuration-admin', 'configured-service'] };
    const token = await roleToken(test.access, roles);
    const query = tenantId === undefined ? '' : `?${new URLSearchParams({ tenantId })}`;
    return call(`${test.url}${configurationPath}/${name}${query}`, { method, token, body });
  };
  const latest = async (name: string) =>
    ((await administer('GET', `${name}/latest`)).body ?? {}) as Record<string, Record<string, Record<string, unknown>>>;

  async function sync(settings: SyncSettings = {}): Promise<Synced> {
    const { dryRun = false, allowPrune = false, builderUrl, timeout = 20_000, pageSize, owner } = settings;
    const log = captureLog();
    const kubeconfig = settings.kubeconfig ?? lab.kubeconfig;
    const clientSync = createClientSync({
      openRefusals: noRefusals,
      configuration: platform.configuration,
      tenants: platform.tenants,
      directory: platform.directory,
      urns,
      maintained: maintainedClients({ BUILDER_APP_URL: builderUrl }, urns),
      redirectUriRules: { allowInsecure: settings.allowInsecureRedirectUris ?? false, allowWildcardPaths: false },
      findCluster: () =>
        findCluster({ env: { KUBECONFIG: kubeconfig }, timeout, ...(pageSize !== undefined && { pageSize }) }),
      ...(owner !== undefined && { owner }),
      clock: () => new Date(),
      log: log.log,
    });
    const before = { configuration: proxy.calls.length, cluster: lab.proxy.calls.length };
    const started = performance.now();
    const cpu = process.cpuUsage();
    const renewLease = settings.renewLease ?? (async () => undefined);
    const transact = () => Promise.reject(new Error('there is no quarantine'));
    const outcome = await clientSync.sync({ dryRun, allowPrune, renewLease, transact, signal: settings.signal });
    const milliseconds = performance.now() - started;
    const { user, system } = process.cpuUsage(cpu);
    const writes = proxy.calls
      .slice(before.configuration)
      .filter((line) => !line.startsWith('GET'))
      .map((line) => line.replace(/ .*\//, ' ').replace(/\?.*/, ''));
    const clusterWrites = lab.proxy.calls
      .slice(before.cluster)
      .filter(({ method }) => method !== 'GET')
      .map(({ method, url }) => `${method} ${url.replace(/.*\/namespaces\/[^/]+\//, '').replace(/\?.*/, '')}`);
    return { ...outcome, log, writes, clusterWrites, milliseconds, busy: (user + system) / 1_000 };
  }

  const configure = async (configuration: unknown, tenantId?: string) => {
    const response = await administer('PATCH', 'token-handler', { operation: 'REPLACE', configuration }, tenantId);
    if (response.status !== 200)
      throw new Error(`The configuration service returned ${response.status}: ${response.text}`);
  };

  return {
    lab,
    test,
    platform,
    configurationProxy: proxy,
    sync,
    configure,
    async define({ maxDescription }) {
      const definition = structuredClone(registered.definitions?.['platform:token-handler']) as CoreDefinition;
      const { properties } = definition.configurationSchema.properties.clients.additionalProperties;
      if (maxDescription !== undefined) properties.description = { type: 'string', maxLength: maxDescription };
      const update = { 'platform:token-handler': definition };
      await administer('PATCH', 'configuration-service', { operation: 'UPDATE', update });
    },
    clients: async () => (await latest('token-handler')).clients ?? {},
    owned: async (owner = lab.namespace) => Object.keys((await latest(recordName))[owner]?.clients ?? {}).sort(),
    async reset() {
      lab.proxy.breakWith(undefined);
      await proxy.heal();
      await lab.removeAll();
      for (const tenantId of [undefined, test.tenant.id, test.otherTenant.id]) await configure({}, tenantId);
      await administer('DELETE', recordName);
    },
    async close() {
      await platform.close();
      await proxy.close();
      await Promise.all([lab.close(), test.close()]);
    },
  };
}
