// Registers this service's configuration definitions, roles, event definitions and notification types at the platform.
// It runs in the background until everything is written, and writes only differences. Meanwhile the service already
// handles requests.
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../service/json-value.ts';
import type { Logger } from '../service/operations/log.ts';
import { retryUntilDone } from '../service/retry.ts';
import type { Urns } from '../service/urn.ts';
import type { Configuration } from './configuration.ts';
import { failureFields } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

type Document = Record<string, unknown>;

export interface ConfigurationDefinition {
  /** JSON Schema, draft 7. */
  configurationSchema: Document;
  description?: string;
  anonymousRead?: boolean;
}

export interface ServiceRole {
  role: string;
  description: string;
  inTenantAdmin?: boolean;
}

export interface EventDefinition {
  name: string;
  description: string;
  /** JSON Schema, draft 7. */
  payloadSchema: Document;
}

/** The items that a service registers. No value may be null, because the configuration service cannot merge null. */
export interface Registered {
  /** Definitions by `<namespace>:<name>`, or by `<namespace>` for all names of this namespace. */
  definitions?: Record<string, ConfigurationDefinition>;
  roles?: ServiceRole[];
  /** Events of the namespace that has the name of the service. */
  events?: EventDefinition[];
  /** Notification types by type id. */
  notificationTypes?: Record<string, Document>;
}

export interface RunningRegistration {
  /** Settles when everything is registered, or after `stop`. Never rejects. */
  readonly done: Promise<void>;
  stop(): void;
}

export interface RegistrationOptions {
  configuration: Pick<Configuration, 'read' | 'update'>;
  urns: Pick<Urns, 'service'>;
  /** Name of this service, such as `form-service`. */
  service: string;
  metrics: Pick<PlatformMetrics, 'registrationPending'>;
  log: Logger;
  /** Milliseconds before the first retry. Each further wait is twice as long, up to `maxDelayMs`. */
  firstDelayMs?: number | undefined;
  maxDelayMs?: number | undefined;
}

/** Starts the registration in the background. Many replicas may run it concurrently. */
export function startRegistration(options: RegistrationOptions, what: Registered): RunningRegistration {
  const { metrics, log } = options;
  const documents = documentsOf(options, what);
  for (const [document] of documents) metrics.registrationPending.set({ document }, 1);
  const stopping = new AbortController();
  const run = async ([document, wanted]: [string, Document]) => {
    if (await writeUntilDone(options, document, wanted, stopping.signal))
      metrics.registrationPending.set({ document }, 0);
  };
  const done = Promise.all(documents.map(run)).then(() => {
    if (!stopping.signal.aborted)
      log.info({ documents: documents.map(([name]) => name) }, 'registered at the platform');
  });
  return { done, stop: () => stopping.abort() };
}

/** Returns the documents of the namespace `platform` with their required content: platform-contracts.md, 4 to 6. */
function documentsOf({ urns, service }: RegistrationOptions, what: Registered): [string, Document][] {
  const documents: [string, Document][] = [];
  if (what.definitions) documents.push(['configuration-service', { ...what.definitions }]);
  if (what.roles) documents.push(['tenant-service', { [urns.service(service)]: { roles: what.roles } }]);
  if (what.events) {
    const definitions = Object.fromEntries(what.events.map((event) => [event.name, event]));
    documents.push(['event-service', { [service]: { name: service, definitions } }]);
  }
  if (what.notificationTypes) documents.push(['notification-service', { ...what.notificationTypes }]);
  return documents;
}

/** Resolves to false if the signal aborts first. */
function writeUntilDone(options: RegistrationOptions, name: string, wanted: Document, signal: AbortSignal) {
  const { log, firstDelayMs = 1_000, maxDelayMs = 60_000 } = options;
  return retryUntilDone(() => writeDifference(options.configuration, name, wanted), {
    backoff: { first: firstDelayMs, cap: maxDelayMs },
    signal,
    onFailure(error, retryInMs) {
      log.warn({ document: name, retryInMs, ...failureFields(error) }, 'registration at the platform failed');
    },
  });
}

async function writeDifference(configuration: RegistrationOptions['configuration'], name: string, wanted: Document) {
  const { latest } = await configuration.read('platform', name, { core: true });
  const stored = isObject(latest?.configuration) ? latest.configuration : {};
  const update = Object.fromEntries(Object.entries(wanted).filter(([key, value]) => differs(stored[key], value)));
  if (Object.keys(update).length === 0) return;
  // Retrying is safe, because members of objects are replaced.
  await configuration.update('platform', name, update, { core: true, idempotent: true });
}

/** True if an UPDATE, which merges objects one level deep, would change the stored value. */
function differs(stored: unknown, wanted: unknown): boolean {
  const merged = isObject(stored) && isObject(wanted) ? { ...stored, ...wanted } : wanted;
  return !isDeepStrictEqual(stored, merged);
}
