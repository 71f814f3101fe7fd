// Creates the clients of the platform's services from one configuration. No service is called before a client is used
// or `preload` runs.
import type { z } from 'zod';
import { type Clock, systemClock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Urns } from '../service/urn.ts';
import { cacheTimes } from './cache.ts';
import { type Configuration, createConfiguration } from './configuration.ts';
import { createDirectory, type Directory } from './directory.ts';
import { directoryOverrides } from './directory-variables.ts';
import type { DocumentBudget } from './document-budget.ts';
import { createEvents, type Events } from './events.ts';
import { HttpAgent } from './http-agent.ts';
import { createPlatformClient, type PlatformClient } from './http-client.ts';
import { createKnownType } from './known-type.ts';
import { createMissBudget } from './miss-budget.ts';
import { createNotifications, type Notifications } from './notifications.ts';
import type { platformFields } from './platform-fields.ts';
import { createPlatformMetrics } from './platform-metrics.ts';
import { type Registered, type RunningRegistration, startRegistration } from './registration.ts';
import { createServiceAccount, type ServiceAccount } from './service-account.ts';
import { createTenants, type TenantDirectory } from './tenants.ts';
import { watchType } from './watch-type.ts';

export type PlatformConfig = z.output<z.ZodObject<typeof platformFields>> & { ACCESS_SERVICE_URL: string };

export interface PlatformOptions {
  config: PlatformConfig;
  /** Name of this service, such as `form-service`. */
  service: string;
  urns: Urns;
  metrics: Metrics;
  log: Logger;
  clock?: Clock | undefined;
  /** By default, the budget of a process that serves requests. */
  documents?: DocumentBudget;
  /** The environment, which contains the `DIR_…` overrides of directory entries. */
  env: NodeJS.ProcessEnv;
}

export interface Platform {
  account: ServiceAccount;
  /**
   * Creates a token source for another account in the realm core, for calls that must not use the service's own
   * account.
   */
  accountOf(clientId: string, clientSecret: string): ServiceAccount;
  directory: Directory;
  tenants: TenantDirectory;
  configuration: Configuration;
  notifications: Notifications;
  events: Events;
  /** Registers this service's definitions, roles and types in the background. `close` stops the registration. */
  register(what: Registered): RunningRegistration;
  /** Returns a client for another service of the directory. It uses the token of this service's account. */
  client(service: string, urn: string): PlatformClient;
  /** Fetches the tenants before they are needed. Never rejects. If the fetch fails, the first lookup repeats it. */
  preload(): Promise<void>;
  close(): Promise<void>;
}

/** Throws ConfigError for an invalid `DIR_…` override. Call it only once per metrics registry. */
export function createPlatform(options: PlatformOptions): Platform {
  const { config, service, urns, log, clock = systemClock, env } = options;
  const overrides = directoryOverrides(env);
  const metrics = createPlatformMetrics(options.metrics);
  const agent = new HttpAgent();
  const times = cacheTimes(config.PLATFORM_CACHE_TTL);
  const budget = createMissBudget(clock, metrics);
  const common = { agent, metrics, log, clock, times, budget, timeoutMs: config.PLATFORM_TIMEOUT };
  const accountOf = (clientId: string, clientSecret: string) =>
    createServiceAccount({ ...common, accessUrl: config.ACCESS_SERVICE_URL, clientId, clientSecret });
  const account = accountOf(config.CLIENT_ID ?? urns.service(service), config.CLIENT_SECRET);
  const directory = createDirectory({ ...common, url: config.DIRECTORY_URL, urns, overrides });
  const registrations: RunningRegistration[] = [];

  const client = (name: string, urn: string) =>
    createPlatformClient({ ...common, service: name, account, baseUrl: () => directory.resolve(urn) });
  const apiClient = (name: string, api: string) => client(name, urns.service(api));

  const tenants = createTenants({ ...common, client: apiClient('tenants', 'tenant-service:v2') });
  const configuration = createConfiguration({
    ...{ ...common, documents: options.documents },
    client: apiClient('configuration', 'configuration-service:v2'),
  });
  const known = createKnownType(common);
  const notifications = createNotifications(apiClient('notifications', 'notification-service:v1'), known);
  const stopping = new AbortController();
  return {
    account,
    accountOf,
    directory,
    tenants,
    configuration,
    notifications,
    events: createEvents(apiClient('events', 'event-service:v1')),
    register(what) {
      const running = startRegistration({ configuration, urns, service, metrics, log }, what);
      registrations.push(running);
      for (const [typeId, { events }] of Object.entries(what.notificationTypes ?? {})) {
        const watch = () => watchType({ notifications, tenants, known, typeId, events, signal: stopping.signal });
        void running.confirmed.then(watch);
      }
      return running;
    },
    client,
    // The client has logged the failure.
    preload: () => tenants.preload().catch(() => undefined),
    async close() {
      stopping.abort();
      for (const running of registrations) running.stop();
      await agent.destroy();
    },
  };
}
