// Registers this service's configuration definitions, roles, event definitions and notification types at the platform.
// The registration runs in the background, and writes only differences. The service already handles requests while the
// registration runs.
//
// The configuration service reads, merges and writes a whole document without a lock. Two services that register at the
// same time can therefore undo each other's registration, although both calls succeed. So each write is read back after
// a pause, and repeated if it was undone. After that, each document is checked again and again, with pauses that grow
// to one hour.
import { setTimeout as sleep } from 'node:timers/promises';
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
  /** The schema of the configuration's value (JSON Schema, draft 7). */
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
  /** The schema of the event's payload (JSON Schema, draft 7). */
  payloadSchema: Document;
}

/** A notification type as the notification service stores it. */
export type NotificationTypeDocument = Document & { events: (Document & { namespace: string; name: string })[] };

/** The items that a service registers. No value may be null, because the configuration service cannot merge null. */
export interface Registered {
  /** Definitions keyed by `<namespace>:<name>`, or by `<namespace>` for all names of that namespace. */
  definitions?: Record<string, ConfigurationDefinition>;
  roles?: ServiceRole[];
  /** Event definitions of the namespace that has the name of this service. */
  events?: EventDefinition[];
  /** Notification types keyed by type id. */
  notificationTypes?: Record<string, NotificationTypeDocument>;
}

export interface RunningRegistration {
  /** Resolves when everything has been written once, or after `stop`. Never rejects. */
  readonly done: Promise<void>;
  /** Resolves when a later read has found everything at the platform, or after `stop`. Never rejects. */
  readonly confirmed: Promise<void>;
  stop(): void;
}

export interface RegistrationOptions {
  configuration: Pick<Configuration, 'read' | 'update'>;
  urns: Pick<Urns, 'service'>;
  /** Name of this service, such as `form-service`. */
  service: string;
  metrics: Pick<PlatformMetrics, 'registrationPending' | 'registrationRepairs'>;
  log: Logger;
  pace?: Partial<RegistrationPace> | undefined;
}

/** The pauses between the calls of a registration, in milliseconds. */
export interface RegistrationPace {
  /** The wait before the first retry of a failed call. Each further wait is twice as long, up to `maxDelayMs`. */
  firstDelayMs: number;
  maxDelayMs: number;
  /**
   * The pause between a write and the read that checks it. Each further pause is four times as long, up to `checkMs`.
   */
  settleMs: number;
  /** Maximum pause between two checks of a document. */
  checkMs: number;
}

const defaultPace: RegistrationPace = { firstDelayMs: 1_000, maxDelayMs: 10_000, settleMs: 3_000, checkMs: 3_600_000 };

/** Starts the registration in the background. Many replicas may run it concurrently. */
export function startRegistration(options: RegistrationOptions, what: Registered): RunningRegistration {
  const { log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const kept = documentsOf(options, what).map((document) => keepRegistered(options, document, signal));
  const documents = kept.map(({ name }) => name);
  const all = async (milestones: Promise<void>[], message: string) => {
    await Promise.all(milestones);
    if (!signal.aborted) log.info({ documents }, message);
  };
  const done = all(
    kept.map(({ written }) => written),
    'registration written',
  );
  const confirmed = all(
    kept.map(({ held }) => held),
    'registered at the platform',
  );
  return { done, confirmed, stop: () => stopping.abort() };
}

/**
 * Writes one document until the platform keeps it. Then checks the document repeatedly until the signal aborts. The
 * pauses between the checks grow up to an hour.
 */
function keepRegistered(options: RegistrationOptions, [name, wanted]: [string, Document], signal: AbortSignal) {
  const { metrics, log } = options;
  const pace = { ...defaultPace, ...options.pace };
  const written = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  metrics.registrationPending.set({ document: name }, 1);
  metrics.registrationRepairs.inc({ document: name }, 0);

  async function run(): Promise<void> {
    let pause = pace.settleMs;
    for (let isFirst = true; ; isFirst = false) {
      const lost = await writeUntilDone(options, pace, name, wanted, signal);
      if (signal.aborted) return;
      if (!isFirst && lost.length > 0) {
        metrics.registrationRepairs.inc({ document: name });
        log.warn({ document: name, keys: lost }, 'registration was lost and is repaired');
      }
      metrics.registrationPending.set({ document: name }, 0);
      written.resolve();
      // A slow writer that read the document earlier may still undo this write, so the next check is soon.
      if (lost.length > 0) pause = pace.settleMs;
      else held.resolve();
      await sleep(spread(pause), undefined, { signal, ref: false });
      pause = Math.min(pause * 4, pace.checkMs);
    }
  }

  run()
    .catch(() => undefined)
    .finally(() => {
      written.resolve();
      held.resolve();
    });
  return { name, written: written.promise, held: held.promise };
}

/** Varies the waits randomly, so that processes that started together do not write at the same time. */
const spread = (milliseconds: number) => milliseconds * (0.75 + Math.random() / 2);

/** Returns the documents of the namespace `platform`, with the keys that this service must register in each. */
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

/**
 * Writes the keys of `wanted` that are missing or different in the document, and returns them. Returns an empty list if
 * the signal aborts first.
 */
async function writeUntilDone(
  options: RegistrationOptions,
  { firstDelayMs, maxDelayMs }: RegistrationPace,
  name: string,
  wanted: Document,
  signal: AbortSignal,
): Promise<string[]> {
  const { configuration, metrics, log } = options;
  let lost: string[] = [];
  const write = async () => {
    lost = await writeDifference(configuration, name, wanted);
  };
  await retryUntilDone(write, {
    backoff: { first: firstDelayMs, cap: maxDelayMs },
    signal,
    onFailure(error, retryInMs) {
      // Another writer may have overwritten the document since the last check, so its state is unknown.
      metrics.registrationPending.set({ document: name }, 1);
      log.warn({ document: name, retryInMs, ...failureFields(error) }, 'registration at the platform failed');
    },
  });
  return lost;
}

async function writeDifference(
  configuration: RegistrationOptions['configuration'],
  name: string,
  wanted: Document,
): Promise<string[]> {
  const { latest } = await configuration.read('platform', name, { core: true });
  const stored = isObject(latest?.configuration) ? latest.configuration : {};
  const update = Object.fromEntries(Object.entries(wanted).filter(([key, value]) => differs(stored[key], value)));
  const keys = Object.keys(update);
  // A retry is safe, because the service replaces members of objects.
  if (keys.length > 0) await configuration.update('platform', name, update, { core: true, idempotent: true });
  return keys;
}

/** True if an UPDATE, which merges objects one level deep, would change the stored value. */
function differs(stored: unknown, wanted: unknown): boolean {
  const merged = isObject(stored) && isObject(wanted) ? { ...stored, ...wanted } : wanted;
  return !isDeepStrictEqual(stored, merged);
}
