// Judges whether a failed delivery is the fault of the service or of the row, and logs failures: one line when they begin,
// one a minute while they continue, one when they end. Lines hold ids and kinds, never a request or a response.
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { databaseRefusal, type QuarantineCause, renderingFailure } from '../../service/quarantine/quarantine.ts';
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
