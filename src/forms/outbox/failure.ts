// Handles failed deliveries. Decides whether the service or the row has caused a failure, detects outages of a service,
// and logs failures. A series of failures is logged when it begins, once a minute while it lasts, and when it ends. Log
// lines contain ids and kinds, but no requests or responses.
import { mayConcernOneCall, PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
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
 * Decides whether the service or the row has caused an error. Any error other than a failed call, a timeout or a
 * database error means that the row could not be rendered.
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
 * What a failed delivery says about the service of its queue. `works`: it refused the row. `fails`: it failed in a way
 * that no row can cause. `responds`: it responded with a failure that the row may have caused, for example because the
 * event is too large, or because its tenant was removed. `silent`: it did not respond; the row may have caused
 * this too. `unknown`: nothing, because the row could not be rendered, or the failure came from another service.
 */
type Verdict = 'works' | 'responds' | 'silent' | 'fails' | 'unknown';

function verdictOf(error: unknown, service: string): Verdict {
  if (sideOf(error) === 'row') return isRefusalBy(service, error) ? 'works' : 'unknown';
  if (!(error instanceof PlatformError)) return 'silent';
  if (mayConcernOneCall(error)) return error.service === 'configuration' ? 'unknown' : 'responds';
  const isSilent = error.kind === 'timeout' || error.kind === 'unreachable' || error.reason === 'truncated';
  return isSilent && error.mayHaveProcessed ? 'silent' : 'fails';
}

const isRefusalBy = (service: string, error: unknown) =>
  error instanceof PlatformError && error.service === service && serviceRefusal(error) !== undefined;

/**
 * Tracks whether a service is down. While the service is down, its queue delivers one row at a time. A tenant whose row
 * fails waits for the next probe. An outage therefore costs a few requests instead of one per row. The outage ends with
 * the first row that the service accepts, so a tenant whose rows always fail does not stop the other tenants.
 *
 * Failures that a row may have caused count as an outage only if they concern several tenants. Otherwise, these rows
 * are only retried with backoff, and the other rows of their tenant are delivered too. A service that does not respond
 * counts as down even if only one tenant is affected, because the circuit breaker of its platform client opens.
 */
export interface Outage {
  /** `probe`: the service was down, and a row of any tenant may now test whether it works again. */
  state(): 'none' | 'probe' | 'down';
  /** The tenants whose rows must wait for the next probe. */
  held(): string[];
  /** Records an accepted delivery. Returns `ended` if it ends a series of failures. */
  succeeded(tenantId: string): 'ended' | undefined;
  /** Records a failed delivery. Returns `ended` if it ends a series of failures. */
  failed(tenantId: string, error: unknown): 'ended' | undefined;
}

export interface OutageOptions {
  service: string;
  clock: Clock;
  backoff: Backoff;
  random?: () => number;
}

/** Number of consecutive failures of the service that count as an outage. */
const limit = 5;

export function createOutage({ service, clock, backoff, random }: OutageOptions): Outage {
  let failures = 0;
  /**
   * Number of failures with the verdict `fails`. An accepted row, and the verdicts `works` and `responds`, reset it.
   */
  let certain = 0;
  /** Number of waits for a probe since the service went down. 0 while the service works. */
  let waits = 0;
  let probeAt = 0;
  /** The tenants with failed deliveries. The value is the number of `waits` at the tenant's last failure. */
  const failed = new Map<string, number>();
  const now = () => clock().getTime();
  const state = () => {
    if (waits === 0) return 'none';
    return now() < probeAt ? 'down' : 'probe';
  };
  const succeeded = (tenantId: string) => {
    // If only the rows of one other tenant fail, this success does not end that tenant's series of failures.
    const isEnd = failures >= limit && (failed.has(tenantId) || failed.size > 1);
    [failures, certain, waits] = [0, 0, 0];
    failed.clear();
    return isEnd ? 'ended' : undefined;
  };
  return {
    state,
    held: () => (state() === 'down' ? [...failed.keys()].filter((tenant) => failed.get(tenant) === waits) : []),
    succeeded,
    failed(tenantId, error) {
      const [verdict, before] = [verdictOf(error, service), state()];
      if (verdict === 'unknown') return undefined;
      if (verdict === 'works') return succeeded(tenantId);
      failed.set(tenantId, waits);
      // During a wait, a failure only says that the service does not work for this tenant either.
      if (before === 'down') return undefined;
      failures += 1;
      if (verdict === 'fails') certain += 1;
      if (verdict === 'responds') certain = 0;
      const isDown = certain >= limit || (failures >= limit && failed.size > 1);
      waits = isDown ? waits + 1 : 0;
      probeAt = now() + retryDelay(waits, backoff, random);
      failed.set(tenantId, waits);
      return undefined;
    },
  };
}

export interface FailureLog {
  /** Records a failure. `subject` is the name of the service, or `postgres`. */
  failed(subject: string, error: unknown, row?: OutboxRow): void;
  quarantined(row: Pick<OutboxRow, 'formId' | 'tenantId' | 'kind' | 'sequence'>, cause: QuarantineCause): void;
  /**
   * Records that Postgres refuses to settle the row in any way, or takes too long. The row is delivered again after its
   * lease, or after a pause.
   */
  unsettled(row: Pick<OutboxRow, 'formId' | 'tenantId' | 'kind' | 'sequence'>, cause: QuarantineCause): void;
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
    unsettled({ formId, tenantId, kind, sequence }, cause) {
      log.error({ kind, form: formId, tenant: tenantId, sequence, ...cause }, 'outbox row not settled');
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
