// Logs failed deliveries. A series of failures is logged when it begins, once a minute while it lasts, and when it
// ends. Log lines contain ids and kinds, but no requests or responses.
import { PlatformError } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { QuarantineCause } from '../../service/quarantine/quarantine.ts';
import { sideOf } from './failure.ts';
import type { OutboxRow } from './outbox.ts';

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
