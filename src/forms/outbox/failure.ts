// Failed deliveries: judges whether the service or the row causes a failure, detects outages of a service, and logs failures,
// with one line when they begin, one a minute while they continue, and one when they end. Lines contain ids and kinds, never
// a request or a response.
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { databaseRefusal, type QuarantineCause, renderingFailure } from '../../service/quarantine/quarantine.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import type { OutboxRow } from './outbox.ts';

/** `service`: it failed, timed out or rejected our credentials. `row`: it refuses this row, or the row cannot be rendered. */
export type FailureSide = 'service' | 'row';

/** A delivery that did not end in time. */
export class DeadlineError extends Error {
  constructor() {
    super('The delivery did not end in time.');
    this.name = 'DeadlineError';
  }
}

/** An error that is neither a failed call nor a timeout, nor of the database, comes from rendering the row. */
export function sideOf(error: unknown): FailureSide {
  if (databaseRefusal(error)) return 'row';
  if (error instanceof DeadlineError || databaseProblem(error)) return 'service';
  if (!(error instanceof PlatformError)) return 'row';
  return serviceRefusal(error) ? 'row' : 'service';
}

/** Why a row may be quarantined; undefined if waiting may help. A row waits until an invalid definition is corrected. */
export function causeOf(error: unknown): QuarantineCause | undefined {
  if (sideOf(error) === 'service') return undefined;
  if (error instanceof Problem && error.slug === 'definition-invalid') return undefined;
  return serviceRefusal(error) ?? databaseRefusal(error) ?? renderingFailure(error);
}

/**
 * Whether a service is down. Then its queue waits, so that an outage costs one request at a time, not one per row. A row that
 * the service refuses never counts as an outage, because it would hold back the rows of other tenants.
 */
export interface Outage {
  /** `probe`: the service was down, and one delivery may show whether it still is. */
  state(): 'none' | 'probe' | 'down';
  /** Milliseconds until the next probe; 0 if the service is not down. */
  waitMs(): number;
  /** A delivery was accepted. Returns `ended` if that ends an outage. */
  succeeded(): 'ended' | undefined;
  /** A delivery failed. */
  failed(side: FailureSide): 'ended' | undefined;
}

/** Consecutive failures of the service that count as an outage. */
const limit = 5;

export function createOutage(options: { clock: Clock; backoff: Backoff; random?: () => number }): Outage {
  let failures = 0;
  /** Since the service is down, the first failure included; 0 while it works. */
  let failedProbes = 0;
  let probeAt = 0;
  const now = () => options.clock().getTime();
  const state = () => {
    if (failedProbes === 0) return 'none';
    return now() < probeAt ? 'down' : 'probe';
  };
  const succeeded = () => {
    const wasDown = failedProbes > 0;
    failures = 0;
    failedProbes = 0;
    return wasDown ? 'ended' : undefined;
  };
  return {
    state,
    waitMs: () => (state() === 'down' ? probeAt - now() : 0),
    succeeded,
    failed(side) {
      const before = state();
      // A delivery that began before the outage says nothing new.
      if (before === 'down') return undefined;
      // A service that was down and now refuses a row is up.
      if (side === 'row') return before === 'probe' ? succeeded() : undefined;
      failures += 1;
      if (before === 'none' && failures < limit) return undefined;
      failedProbes += 1;
      probeAt = now() + retryDelay(failedProbes, options.backoff, options.random);
      return undefined;
    },
  };
}

export interface FailureLog {
  /** `subject`: the service, or `postgres`. */
  failed(subject: string, error: unknown, row?: OutboxRow): void;
  quarantined(row: Pick<OutboxRow, 'formId' | 'tenantId' | 'kind' | 'sequence'>, cause: QuarantineCause): void;
  /** The subject works again. */
  ended(subject: string): void;
}

/** Consecutive failures of a subject. Times in milliseconds since 1970. */
interface Burst {
  began: number;
  logged: number;
  total: number;
  unlogged: number;
}

/** Milliseconds between two lines of a burst. */
const silence = 60_000;

export function createFailureLog({ log, clock }: { log: Logger; clock: Clock }): FailureLog {
  const bursts = new Map<string, Burst>();
  return {
    failed(subject, error, row) {
      const now = clock().getTime();
      const side = row ? sideOf(error) : 'service';
      const key = `${subject} ${side}`;
      const burst = bursts.get(key) ?? { began: now, logged: Number.NEGATIVE_INFINITY, total: 0, unlogged: 0 };
      bursts.set(key, burst);
      burst.total += 1;
      burst.unlogged += 1;
      if (now - burst.logged < silence) return;
      const failures = burst.unlogged;
      Object.assign(burst, { logged: now, unlogged: 0 });
      const text = side === 'row' ? 'outbox row refused' : 'outbox delivery failed';
      log.warn({ outbox: subject, side, failures, ...describeRow(row), ...describe(error) }, text);
    },
    quarantined({ formId, tenantId, kind, sequence }, cause) {
      log.warn({ kind, form: formId, tenant: tenantId, sequence, ...cause }, 'item quarantined');
    },
    ended(subject) {
      const key = `${subject} service`;
      const burst = bursts.get(key);
      if (!burst) return;
      bursts.delete(key);
      const seconds = Math.round((clock().getTime() - burst.began) / 1000);
      log.info({ outbox: subject, failures: burst.total, seconds }, 'outbox delivery recovered');
    },
  };
}

function describeRow(row: OutboxRow | undefined) {
  return row && { kind: row.kind, formId: row.formId, sequence: row.sequence, attempts: row.attempts };
}

function describe(error: unknown) {
  if (!(error instanceof PlatformError)) return { err: error };
  return { service: error.service, failure: error.kind, status: error.upstreamStatus, reason: error.reason };
}
