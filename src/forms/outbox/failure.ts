// Tells whose fault a failed delivery is, and logs failures as bursts: one line when they begin, one a minute while they
// go on, one when they end. It logs ids and kinds, never what was sent or what the service answered about it.
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { databaseRefusal, type QuarantineCause, renderingFailure } from '../../service/quarantine/quarantine.ts';
import type { FailureSide } from './gate.ts';
import type { OutboxRow } from './outbox.ts';

/** A delivery that did not end in time. */
export class DeadlineError extends Error {
  constructor() {
    super('the delivery did not end in time');
    this.name = 'DeadlineError';
  }
}

export interface FailureReport {
  sideOf(error: unknown): FailureSide;
  /** Why a row that failed may be quarantined; undefined where waiting may help. */
  causeOf(error: unknown): QuarantineCause | undefined;
  /** `subject`: the lane, or `postgres`. */
  failed(subject: string, error: unknown, row?: OutboxRow): void;
  /** The row is in quarantine. */
  quarantined(row: Pick<OutboxRow, 'formId' | 'tenantId' | 'kind' | 'sequence'>, cause: QuarantineCause): void;
  /** The subject works again. */
  ended(subject: string): void;
}

interface Burst {
  began: number;
  logged: number;
  total: number;
  unlogged: number;
}

const silence = 60_000;

export function createFailureReport({ log, clock }: { log: Logger; clock: Clock }): FailureReport {
  const bursts = new Map<string, Burst>();

  return {
    sideOf,
    causeOf,
    failed(subject, error, row) {
      const now = clock().getTime();
      const side = row ? sideOf(error) : 'service';
      const key = side === 'row' ? `${subject}, refused rows` : subject;
      const burst = bursts.get(key) ?? {
        began: now,
        logged: Number.NEGATIVE_INFINITY,
        total: 0,
        unlogged: 0,
      };
      bursts.set(key, burst);
      burst.total += 1;
      burst.unlogged += 1;
      if (now - burst.logged < silence) return;
      burst.logged = now;
      const failures = burst.unlogged;
      burst.unlogged = 0;
      log.warn(
        {
          outbox: subject,
          side,
          failures,
          ...describeRow(row),
          ...describe(error),
        },
        texts[side],
      );
    },
    quarantined({ formId, tenantId, kind, sequence }, cause) {
      log.warn({ kind, form: formId, tenant: tenantId, sequence, ...cause }, 'item quarantined');
    },
    ended(subject) {
      const burst = bursts.get(subject);
      if (!burst) return;
      bursts.delete(subject);
      const seconds = Math.round((clock().getTime() - burst.began) / 1000);
      log.info({ outbox: subject, failures: burst.total, seconds }, 'the outbox delivers again');
    },
  };
}

const texts: Record<FailureSide, string> = {
  service: 'the outbox cannot deliver and tries again',
  row: 'outbox row refused',
};

/** What is neither a failed call, nor the database, nor time, is something about this row that cannot be rendered. */
function sideOf(error: unknown): FailureSide {
  if (databaseRefusal(error)) return 'row';
  if (error instanceof DeadlineError || databaseProblem(error)) return 'service';
  if (!(error instanceof PlatformError)) return 'row';
  return serviceRefusal(error) ? 'row' : 'service';
}

/** An invalid form definition is its administrator's to mend: the row waits for it. */
function causeOf(error: unknown): QuarantineCause | undefined {
  if (sideOf(error) === 'service') return undefined;
  if (error instanceof Problem && error.slug === 'definition-invalid') return undefined;
  return serviceRefusal(error) ?? databaseRefusal(error) ?? renderingFailure(error);
}

function describeRow(row: OutboxRow | undefined) {
  return (
    row && {
      kind: row.kind,
      formId: row.formId,
      sequence: row.sequence,
      attempts: row.attempts,
    }
  );
}

function describe(error: unknown) {
  if (!(error instanceof PlatformError)) return { err: error };
  return {
    service: error.service,
    failure: error.kind,
    status: error.upstreamStatus,
    reason: error.reason,
  };
}
