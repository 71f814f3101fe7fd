// Completes the work that registrations leave behind. Every pod deletes replaced clients at the identity provider,
// sends events, records interrupted registrations, and encrypts secrets again after a key rotation. The row of a task
// stays until the task is done, or until the identity provider has rejected the client's token. A row is quarantined
// after repeated refusals.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Events } from '../../platform/events.ts';
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import { type Clock, earlier, later } from '../../service/clock.ts';
import { type KeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import { createKeyRingMetrics } from '../../service/keys/key-ring-metrics.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createClockMetrics } from '../../service/postgres/clock-metrics.ts';
import { databaseRefusal, type QuarantineCause } from '../../service/quarantine/quarantine.ts';
import { createQuarantineMetrics } from '../../service/quarantine/quarantine-metrics.ts';
import { releaseInPages } from '../../service/quarantine/quarantine-store.ts';
import { retryDelay } from '../../service/retry.ts';
import { longestStop, within } from '../../service/time-limit.ts';
import { createLeftoverMetrics } from './client-metrics.ts';
import { createKeyRingStore } from './key-ring-store.ts';
import type { LeftoverClients } from './leftover-clients.ts';
import {
  createPendingWorkStore,
  createWorkQuarantine,
  type Deletion,
  type PendingEvent,
  type PendingWorkStore,
  quarantineKind,
  type WorkKind,
  type WorkRows,
} from './pending-work-store.ts';
import type { ProviderRegistration } from './provider-registration.ts';
import { openToken } from './registration.ts';
import { defaultPace, type UpkeepPace } from './upkeep-pace.ts';

export interface UpkeepOptions {
  pool: pg.Pool;
  keys: KeyRing;
  provider: ProviderRegistration;
  events: Pick<Events, 'send'>;
  leftovers: LeftoverClients;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Longest duration of a call to another service, in milliseconds. */
  timeout: number;
  pace?: Partial<UpkeepPace> | undefined;
}

type Context = UpkeepOptions & { pace: UpkeepPace; store: PendingWorkStore };

const batch = 10;

export function startUpkeep(options: UpkeepOptions) {
  const pace = { ...defaultPace(options.timeout), ...options.pace };
  const context: Context = { ...options, pace, store: createPendingWorkStore(options) };
  exportLeftovers(context);
  const houseKeepWhenDue = createHousekeeping(context);
  const stopping = new AbortController();
  let nudged = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      nudged = new AbortController();
      const isMore = await lookForWork().catch((error: unknown) => {
        options.log.warn({ err: error }, 'upkeep of registrations failed');
        return false;
      });
      const signal = AbortSignal.any([stopping.signal, nudged.signal]);
      const pause = pace.poll * (0.75 + Math.random() / 2);
      if (!isMore) await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  const steps = [
    () => processBatch(context, 'deletion', removeClient),
    () => processBatch(context, 'event', sendEvent),
    () => recordLostAttempts(context),
    houseKeepWhenDue,
  ];

  async function lookForWork(): Promise<boolean> {
    let isMore = false;
    for (const step of steps) {
      if (stopping.signal.aborted) return false;
      if ((await step()) === batch) isMore = true;
    }
    return isMore;
  }

  const loop = run();
  return {
    /** Looks for work now instead of at the next poll. Call this after a commit that added rows. */
    nudge: (): void => nudged.abort(),
    /** Starts no more work, and resolves when no work is running, after `longestStop` at most. */
    async stop(): Promise<void> {
      stopping.abort();
      await within(loop, longestStop, undefined);
    },
  };
}

/**
 * Claims rows of one kind and processes them concurrently. Returns the number of claimed rows. If the database fails
 * for a row, throws its error, but only when the work on all rows has ended, because `stop` waits for this work.
 */
async function processBatch<Kind extends WorkKind>(
  context: Context,
  kind: Kind,
  work: (context: Context, row: WorkRows[Kind]) => Promise<void>,
): Promise<number> {
  const { store, pace, clock } = context;
  const now = clock();
  const rows = await store.claim(kind, { now, until: later(now, pace.lease), limit: batch });
  const settled = await Promise.allSettled(
    rows.map(async (row) => {
      try {
        await work(context, row);
      } catch (error) {
        return settleFailure(context, kind, row, error);
      }
      await store.done(kind, row.id);
    }),
  );
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  return rows.length;
}

function causeOf(error: unknown): QuarantineCause | undefined {
  // Operators may add the missing key to the key ring, so the row is quarantined, not deleted.
  if (error instanceof KeyRingError) return { reason: 'key-missing', detail: '' };
  return serviceRefusal(error) ?? databaseRefusal(error);
}

async function settleFailure(
  { store, pace, clock, log }: Context,
  kind: WorkKind,
  row: Deletion | PendingEvent,
  error: unknown,
): Promise<void> {
  const cause = causeOf(error);
  const refusals = row.refusals + (cause ? 1 : 0);
  if (cause && (refusals >= pace.refusals || cause.reason === 'key-missing')) {
    await store.quarantine(kind, row, cause, clock());
    log.warn({ kind: quarantineKind(kind), ...describe(row), ...cause }, 'item quarantined');
    return;
  }
  const delay = retryDelay(row.attempts, { first: pace.firstRetry, cap: pace.longestRetry });
  const why = error instanceof PlatformError ? { kind: error.kind, status: error.upstreamStatus } : { err: error };
  log.warn({ ...describe(row), attempts: row.attempts, retryInMs: delay, ...why }, `${kind} failed, retrying`);
  await store.retry(kind, row.id, { notBefore: later(clock(), delay), refusals });
}

function describe(row: Deletion | PendingEvent): object {
  const { tenantId, clientId, oidcClientId, name } = row as Partial<Deletion & PendingEvent>;
  return { tenant: tenantId, client: clientId, oidcClientId, event: name };
}

async function removeClient({ provider, keys, leftovers, clock, log }: Context, deletion: Deletion): Promise<void> {
  // A client without a URI was provided by an administrator, and must not be deleted. An older version of the token
  // handler may have scheduled the deletion by mistake.
  if (deletion.registrationClientUri === '') return;
  const outcome = await provider.remove({ ...deletion, registrationAccessToken: openToken(keys, deletion) });
  if (outcome === 'removed') log.info(describe(deletion), 'replaced client deleted at the identity provider');
  else {
    await leftovers.recordRefused(deletion, clock());
    log.warn(
      { ...describe(deletion), clientName: deletion.clientName ?? deletion.clientId },
      'replaced client not deleted: the identity provider rejected its registration access token; if the client still exists there, delete it',
    );
  }
}

async function sendEvent({ events }: Context, { id, tenantId, name, payload, created }: PendingEvent): Promise<void> {
  await events.send({
    namespace: 'token-handler',
    name,
    timestamp: created.toISOString(),
    context: { idempotencyKey: id },
    tenantId,
    payload,
  });
}

/**
 * Logs registration attempts with an unknown outcome, so that operators look for unused clients. The token handler
 * cannot find such clients, because RFC 7591 has no call that lists clients.
 */
async function recordLostAttempts({ leftovers, clock, pace, log }: Context): Promise<void> {
  for (const attempt of await leftovers.recordLostAttempts(earlier(clock(), pace.attempt)))
    log.warn(
      attempt,
      'registration interrupted: the realm may contain an unused client of this name; if it is not the registered one, delete it there',
    );
}

/** Milliseconds for which leftovers are kept: 90 days. */
const leftoverAge = 90 * 86_400_000;
/** Milliseconds between two runs of housekeeping. */
const housekeepingInterval = 3_600_000;

function createHousekeeping({ pool, keys, store, leftovers, clock, log, metrics }: Context): () => Promise<void> {
  const quarantine = createWorkQuarantine({ pool, clock });
  createQuarantineMetrics({ registry: metrics.registry, store: quarantine });
  createClockMetrics({ registry: metrics.registry, pool, clock });
  const keyRing = createKeyRingStore({ pool, keys, clock });
  createKeyRingMetrics({ registry: metrics.registry, read: keyRing.read });
  let due = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = clock().getTime();
    if (now < due) return;
    await keyRing.note();
    await releaseInPages((cursor) => quarantine.release('of other versions', cursor));
    await leftovers.prune(earlier(clock(), leftoverAge));
    const removed = await store.prune();
    if (removed > 0) log.warn({ removed }, 'oldest failed deletions and events of clients removed');
    const { resealed, unreadable } = await store.reseal();
    if (resealed > 0) log.info({ resealed }, 'secrets encrypted with the current key');
    if (unreadable > 0)
      log.error({ unreadable }, 'stored registrations cannot be decrypted: KEY_RING lacks the key that encrypted them');
    // Only now: if a step has failed, the housekeeping is repeated at the next poll.
    due = now + housekeepingInterval;
  };
}

function exportLeftovers({ store, leftovers, metrics }: Context): void {
  createLeftoverMetrics({
    registry: metrics.registry,
    async read() {
      const pending = await store.pending().catch(() => ({}));
      const clients = await leftovers.count().catch(() => undefined);
      return { ...pending, ...(clients !== undefined && { client: clients }) };
    },
  });
}
