// Finishes in the background what registrations left behind. Every pod deletes replaced clients at the identity provider,
// sends events, logs interrupted registrations and encrypts secrets again after a key rotation. A row stays until its work
// is done or the identity provider does not allow it. A row that is rejected repeatedly is quarantined.
import { setTimeout as sleep } from 'node:timers/promises';
import prom from 'prom-client';
import type { Events } from '../../platform/events.ts';
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { databaseRefusal, type QuarantineCause } from '../../service/quarantine/quarantine.ts';
import type { QuarantineStore } from '../../service/quarantine/quarantine-store.ts';
import { retryDelay } from '../../service/retry.ts';
import type { AccessRegistration } from './access-registration.ts';
import type { Deletion, LeftoverKind, LeftoverStore, PendingEvent } from './leftover-store.ts';

export interface Upkeep {
  /** Looks for work at once; call it after a commit that left some. */
  nudge(): void;
  /** Starts no more work, and resolves when nothing runs any more. */
  stop(): Promise<void>;
}

/** Times in milliseconds. */
export interface UpkeepPace {
  poll: number;
  /** Longest wait after the first failure of a row; doubled after each further one, up to `longestRetry`. */
  firstRetry: number;
  longestRetry: number;
  /** How long no other pod claims a row; longer than a call takes. */
  lease: number;
  /** Age of an unfinished attempt to register that counts as interrupted. */
  attempt: number;
  /** Also of removing finished entries of the quarantine. */
  reseal: number;
  /** Refusals of a row until it is quarantined. */
  refusals: number;
}

const defaultPace: UpkeepPace = {
  poll: 5_000,
  firstRetry: 5_000,
  longestRetry: 3_600_000,
  lease: 60_000,
  attempt: 300_000,
  reseal: 3_600_000,
  // With the waits between them, three quarters of an hour.
  refusals: 10,
};

export interface UpkeepOptions {
  store: LeftoverStore;
  quarantine: Pick<QuarantineStore, 'release'> & { tidy(): Promise<void> };
  access: AccessRegistration;
  events: Pick<Events, 'send'>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  pace?: Partial<UpkeepPace> | undefined;
}

type Parts = UpkeepOptions & { pace: UpkeepPace };

const batch = 10;

export function startUpkeep(options: UpkeepOptions): Upkeep {
  const parts: Parts = { ...options, pace: { ...defaultPace, ...options.pace } };
  const { pace, log } = parts;
  measure(parts);
  const stopping = new AbortController();
  const resealWhenDue = createResealing(parts);
  let nudged: AbortController | undefined;
  let again = false;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      again = false;
      const more = await lookForWork().catch((error: unknown) => {
        log.warn({ err: error }, 'the upkeep of registrations failed');
        return false;
      });
      if (!more && !again) await pause();
    }
  }

  async function lookForWork(): Promise<boolean> {
    const deleted = await workOff(parts, 'deletion', (claim) => parts.store.claimDeletions(claim), removeClient);
    const sent = await workOff(parts, 'event', (claim) => parts.store.claimEvents(claim), sendEvent);
    await tellOfLostAttempts(parts);
    await resealWhenDue();
    return deleted === batch || sent === batch;
  }

  async function pause(): Promise<void> {
    nudged = new AbortController();
    const signal = AbortSignal.any([stopping.signal, nudged.signal]);
    await sleep(pace.poll * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => undefined);
  }

  const loop = run();
  return {
    nudge() {
      again = true;
      nudged?.abort();
    },
    async stop() {
      stopping.abort();
      await loop;
    },
  };
}

/** Claims rows and processes them concurrently; returns how many. */
async function workOff<Row extends Deletion | PendingEvent>(
  parts: Parts,
  kind: LeftoverKind,
  claim: (options: { now: Date; until: Date; limit: number }) => Promise<Row[]>,
  work: (parts: Parts, row: Row) => Promise<void>,
): Promise<number> {
  const { store, pace, clock } = parts;
  const now = clock();
  const rows = await claim({ now, until: after(now, pace.lease), limit: batch });
  await Promise.all(
    rows.map(async (row) => {
      const failure = await work(parts, row).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      if (failure) await settleFailure(parts, kind, row, failure.error);
      else await store.done(kind, row.id);
    }),
  );
  return rows.length;
}

/** The row's secret is sealed with a key that is no longer in the ring. The row stays: the key may come back. */
class KeyMissingError extends Error {}

function causeOf(error: unknown): QuarantineCause | undefined {
  if (error instanceof KeyMissingError) return { reason: 'key-missing', detail: '' };
  return serviceRefusal(error) ?? databaseRefusal(error);
}

async function settleFailure(
  { store, pace, clock, log }: Parts,
  kind: LeftoverKind,
  row: Deletion | PendingEvent,
  error: unknown,
): Promise<void> {
  const cause = causeOf(error);
  const refusals = row.refusals + (cause ? 1 : 0);
  if (cause && (refusals >= pace.refusals || cause.reason === 'key-missing')) {
    await store.quarantine(kind, row, cause, clock());
    log.warn({ kind: `client-${kind}`, ...describe(row), ...cause }, 'item quarantined');
    return;
  }
  const delay = retryDelay(row.attempts, { first: pace.firstRetry, cap: pace.longestRetry });
  const why = error instanceof PlatformError ? { kind: error.kind, status: error.upstreamStatus } : { err: error };
  log.warn({ ...describe(row), attempts: row.attempts, retryInMs: delay, ...why }, `a ${kind} failed`);
  await store.retry(kind, row.id, { notBefore: after(clock(), delay), refusals });
}

function describe(row: object): object {
  const { tenantId, clientId, oidcClientId, name } = row as Partial<Deletion & PendingEvent>;
  return { tenant: tenantId, client: clientId, oidcClientId, event: name };
}

async function removeClient({ access, log }: Parts, deletion: Deletion): Promise<void> {
  const { registrationAccessToken } = deletion;
  if (registrationAccessToken === undefined) throw new KeyMissingError();
  const outcome = await access.remove({ ...deletion, registrationAccessToken });
  if (outcome === 'removed') log.info(describe(deletion), 'a replaced client was deleted at the access service');
  else
    log.warn(
      describe(deletion),
      'a replaced client cannot be deleted: its registration access token is not accepted; if it is still there, delete it in the access service',
    );
}

async function sendEvent({ events }: Parts, { id, tenantId, name, payload, created }: PendingEvent): Promise<void> {
  await events.send({
    namespace: 'token-handler',
    name,
    timestamp: created.toISOString(),
    context: { idempotencyKey: id },
    tenantId,
    payload,
  });
}

/** RFC 7591 has no way to find a client whose registration response was lost, so an operator has to. */
async function tellOfLostAttempts({ store, clock, pace, log }: Parts): Promise<void> {
  const lost = await store.takeLostAttempts(after(clock(), -pace.attempt));
  for (const { tenantId, clientId, realm, started } of lost)
    log.warn(
      { tenant: tenantId, client: clientId, realm, started },
      'a registration was cut off: the realm may hold a client of this name that nobody has the secret of; it can be deleted there, if it is not the registered one',
    );
}

function createResealing({ store, quarantine, clock, pace, log }: Parts): () => Promise<void> {
  let due = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = clock().getTime();
    if (now < due) return;
    due = now + pace.reseal;
    await quarantine.release('of other versions');
    await quarantine.tidy();
    const { resealed, unreadable } = await store.reseal();
    if (resealed > 0) log.info({ resealed }, 'sealed under the current key');
    if (unreadable > 0) log.error({ unreadable }, 'registrations are sealed under a key that is not in the ring');
  };
}

function measure({ store, metrics }: Parts): void {
  new prom.Gauge({
    name: 'token_handler_registration_leftovers',
    help: 'Replaced clients to be deleted at the access service, and events to be sent',
    labelNames: ['kind'],
    registers: [metrics.registry],
    async collect() {
      const pending = await store.pending().catch(() => undefined);
      for (const [kind, count] of Object.entries(pending ?? {})) this.set({ kind }, count);
    },
  });
}

function after(moment: Date, milliseconds: number): Date {
  return new Date(moment.getTime() + milliseconds);
}
