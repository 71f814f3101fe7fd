// Tells whose fault a failed delivery is, and logs failures as bursts: one line when they begin, one a minute while they
// go on, one when they end. It logs ids and kinds, never what was sent or what the service answered about it.
import { PlatformError } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/log.ts';
import type { FailureSide } from './gate.ts';
import type { OutboxRow } from './outbox.ts';

export interface FailureReport {
  sideOf(error: unknown): FailureSide;
  /** `subject`: the lane, or `postgres`. */
  failed(subject: string, error: unknown, row?: OutboxRow): void;
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
    failed(subject, error, row) {
      const now = clock().getTime();
      const side = sideOf(error);
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
  row: 'what the outbox delivers is refused; it is kept, tried again, and holds back what follows of its form',
};

// An address that does not exist (404, 405) is a wrong configuration of the service and no fault of one row.
const wrongAddress = new Set([404, 405]);

function sideOf(error: unknown): FailureSide {
  if (!(error instanceof PlatformError) || error.kind !== 'rejected') return 'service';
  return error.upstreamStatus !== undefined && wrongAddress.has(error.upstreamStatus) ? 'service' : 'row';
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
