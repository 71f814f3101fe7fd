// Handles failed deliveries. Decides whether the service or the row has caused a failure, detects outages of a service,
// and logs failures. A series of failures is logged when it begins, once a minute while it lasts, and when it ends. Log
// lines contain ids and kinds, but no requests or responses.
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { databaseRefusal, type QuarantineCause, renderingFailure } from '../../service/quarantine/quarantine.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import type { OutboxRow } from './outbox.ts';

/**
 * Who caused a failed delivery. `service`: the service failed, timed out or rejected the credentials of the form
 * service. `row`: the service refused the row, or the event could not be rendered.
 */
export type FailureSide = 'service' | 'row';

/** The error of a delivery that did not end in time. */
export class DeadlineError extends Error {
  constructor() {
    super('The delivery did not end in time.');
    this.name = 'DeadlineError';
  }
}

/**
 * Decides whether the service or the row has caused an error. If the error comes neither from a call nor from a timeout
 * or the database, the row could not be rendered.
 */
export function sideOf(error: unknown): FailureSide {
  if (databaseRefusal(error)) return 'row';
  if (error instanceof DeadlineError || databaseProblem(error)) return 'service';
  if (!(error instanceof PlatformError)) return 'row';
  return serviceRefusal(error) ? 'row' : 'service';
}

/**
 * Returns the reason to quarantine a row. Undefined if waiting may help: for example, an invalid definition may be
 * corrected.
 */
export function causeOf(error: unknown): QuarantineCause | undefined {
  if (sideOf(error) === 'service') return undefined;
  if (error instanceof Problem && error.slug === 'definition-invalid') return undefined;
  return serviceRefusal(error) ?? databaseRefusal(error) ?? renderingFailure(error);
}

/**
 * Tracks whether a service is down. While it is down, its queue sends only probes, so that an outage costs one request
 * at a time instead of one per row. A refusal of a row by the service does not count as an outage, because an outage
 * stops the rows of all tenants.
 */
export interface Outage {
  /** `probe`: the service was down, and one delivery may now test whether it works again. */
  state(): 'none' | 'probe' | 'down';
  /** Milliseconds until the next probe; 0 if the service is not down. */
  waitMs(): number;
  /** Records an accepted delivery. Returns `ended` if this delivery ends an outage. */
  succeeded(): 'ended' | undefined;
  /**
   * Records a failed delivery. Returns `ended` if this delivery ends an outage, because the service refused a probe's
   * row.
   */
  failed(side: FailureSide): 'ended' | undefined;
}

/** Number of consecutive failures of the service that count as an outage. */
const limit = 5;

export function createOutage(options: { clock: Clock; backoff: Backoff; random?: () => number }): Outage {
  let failures = 0;
  /**
   * Number of failures since the service went down, including the failure that started the outage. 0 while the service
   * works.
   */
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
      // A delivery that fails during the outage began before it, so its failure is not new information.
      if (before === 'down') return undefined;
      // If the service refuses the row of a probe, the service works again.
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
  /** Records a failure. `subject` is the name of the service, or `postgres`. */
  failed(subject: string, error: unknown, row?: OutboxRow): void;
  quarantined(row: Pick<OutboxRow, 'formId' | 'tenantId' | 'kind' | 'sequence'>, cause: QuarantineCause): void;
  /** Records that the subject works again. */
  ended(subject: string): void;
}

/** A series of consecutive failures of one subject. Times are in milliseconds since 1970. */
interface Burst {
  began: number;
  logged: number;
  total: number;
  unlogged: number;
}

/** Milliseconds between two log lines of a series of failures. */
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
