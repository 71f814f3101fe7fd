// Subscribes the applicant of a form immediately. This is needed if a code must be sent before the dispatcher has
// delivered the form's `subscribe` row. Two overlapping requests can create two subscribers at the notification
// service, and the applicant would then get every notice twice. Both the dispatcher and this function therefore claim
// the row first.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { retryDelay } from '../../service/retry.ts';
import type { Deliver } from './delivery.ts';
import type { ClaimedRow, OutboxStore } from './store.ts';

/**
 * Returns the id of the form's subscriber. `lost` is the id of a subscriber that the notification service does not know
 * any more, for example after it was restored from a backup. In that case, subscribes the applicant again. Throws
 * `gone` if the form was deleted, `no-channel` if the applicant has no channel, `unavailable` if another process is
 * still subscribing the applicant, or PlatformError.
 */
export type SubscribeNow = (formId: string, lost?: string) => Promise<string>;

export interface SubscribeNowOptions {
  store: Pick<OutboxStore, 'claimSubscribe' | 'findSubscriber' | 'replaceSubscriber' | 'accept' | 'fail'>;
  deliver: Deliver;
  clock: Clock;
  /** Milliseconds after which a call of a platform client fails (PLATFORM_TIMEOUT). */
  callTimeout: number;
}

/** Milliseconds between two lookups of the subscriber while another process subscribes the applicant. */
const looks = { first: 25, cap: 500 };
/** Milliseconds after which the dispatcher may retry a `subscribe` row whose delivery failed here. */
const retry = 1_000;

export function createSubscribeNow(options: SubscribeNowOptions): SubscribeNow {
  const { store, clock, callTimeout } = options;
  return async (formId, lost) => {
    if (lost) await store.replaceSubscriber(formId, lost, clock());
    // Another process may have claimed the row. Until the deadline, that process can make one call and record the
    // result.
    const deadline = performance.now() + callTimeout + 2_000;
    for (let look = 1; performance.now() < deadline; look += 1) {
      const known = await store.findSubscriber(formId);
      if (known === null) throw new Problem('gone', 'The form was deleted.');
      if (known !== undefined) return known;
      const row = await store.claimSubscribe(formId, clock(), callTimeout * 3);
      if (row) return subscribe(row, options);
      await sleep(retryDelay(look, looks));
    }
    throw new Problem('unavailable', 'The applicant is being subscribed to notices.', {
      headers: { 'Retry-After': '5' },
    });
  };
}

async function subscribe(row: ClaimedRow, { store, deliver, clock }: SubscribeNowOptions): Promise<string> {
  try {
    const { subscriberId } = await deliver(row);
    await store.accept([{ row, subscriberId }], clock());
    if (subscriberId === undefined) throw new Problem('no-channel', 'The applicant has no channel for notices.');
    return subscriberId;
  } catch (error) {
    // If the row is in quarantine, it stays there.
    const isQuarantined = row.notBefore === 'infinity';
    const notBefore = new Date(clock().getTime() + retry);
    await store.fail([isQuarantined ? { kind: 'untried', row } : { kind: 'failed', row, notBefore }]);
    throw error;
  }
}
