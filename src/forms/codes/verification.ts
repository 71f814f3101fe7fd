// Sends and verifies codes at the notification service, within this service's budgets. A failure of that service never
// counts as a wrong code. It is never asked about a used or an empty code.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Notifications } from '../../platform/notifications.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { type Channel, codeChannel, type Form } from '../forms/form.ts';
import { type Account, type BudgetKeys, type CodeHashes, tooManySends, tooManyWrongCodes } from './code.ts';
import type { CodeStore, CodeTry } from './store.ts';

export interface CodeRequest {
  form: Form;
  account: Account;
  traceparent?: string | undefined;
}

export interface Verification {
  /** Resolves when the code has an open session for the account. Throws `invalid-code`, `too-many-requests` or PlatformError. */
  verify(request: CodeRequest & { code: string }): Promise<void>;
  /** Sends a code to the applicant. Throws `no-channel`, `too-many-requests` or PlatformError. */
  send(request: Omit<CodeRequest, 'account'>): Promise<{ channel: Channel['channel']; expires: Date }>;
}

export interface VerificationOptions {
  store: CodeStore;
  hashes: CodeHashes;
  notifications: Pick<Notifications, 'sendCode' | 'checkCode'>;
  /** Returns the id of the form's subscriber, and creates the subscriber if needed. */
  ensureSubscriber(form: Form, traceparent: string | undefined): Promise<string>;
  /** Lifetime of the notification service's codes in milliseconds. */
  codeLifetime: number;
  clock: Clock;
}

/** How often a request polls a concurrent check of the same code; in total longer than a check takes. */
const looks = 45;
/** Milliseconds between two polls, doubled up to half a second. */
const pause = { first: 25, cap: 500 };

export function createVerification(options: VerificationOptions): Verification {
  const { store, hashes, clock } = options;

  function keysOf({ id, tenantId }: Form, { channel, address }: Channel): BudgetKeys {
    return { tenantId, formId: id, addressHash: hashes.address(tenantId, channel, address) };
  }

  async function verify({ form, account, code, traceparent }: CodeRequest & { code: string }): Promise<void> {
    const channel = codeChannel(form.applicant);
    if (!channel) throw invalidCode();
    const attempt: CodeTry = {
      ...keysOf(form, channel),
      issuer: account.issuer,
      subject: account.subject,
      codeHash: hashes.code(form.id, code),
      now: clock(),
    };
    for (let look = 0; look < looks; look += 1) {
      const reservation = await store.reserveTry(attempt);
      if (reservation.outcome === 'session') return;
      if (reservation.outcome === 'used') throw invalidCode();
      if (reservation.outcome === 'spent') throw tooManyWrongCodes(reservation.waitMs);
      if (reservation.outcome === 'reserved') return settle(reservation.id);
      await sleep(Math.min(pause.first * 2 ** look, pause.cap));
    }
    throw new Problem('unavailable', 'The same code is being checked.', { headers: { 'Retry-After': '5' } });

    async function settle(id: string): Promise<void> {
      const isRight = await check(form, channel, code, traceparent).catch(async (error: unknown) => {
        await store.refundTry(id, attempt);
        throw error;
      });
      const isOpen = isRight ? await store.settleRight(id, attempt) : await store.settleWrong(id, attempt);
      if (!isOpen) throw invalidCode();
    }
  }

  async function check(form: Form, to: Channel | undefined, code: string, traceparent?: string): Promise<boolean> {
    // Without a subscriber no code was ever sent.
    if (!form.subscriberId || !to) return false;
    try {
      const { tenantId, subscriberId } = form;
      const { channel, address } = to;
      return await options.notifications.checkCode({ tenantId, subscriberId, channel, address, code, traceparent });
    } catch (error) {
      if (error instanceof PlatformError && error.kind === 'rejected') return false;
      throw error;
    }
  }

  async function send({ form, traceparent }: Omit<CodeRequest, 'account'>) {
    const to = codeChannel(form.applicant);
    if (!to) throw new Problem('no-channel', 'The applicant has no channel that a code could be sent to.');
    const now = clock();
    const reservation = await store.reserveSend(keysOf(form, to), now);
    if ('waitMs' in reservation) throw tooManySends(reservation.waitMs);
    try {
      const subscriberId = form.subscriberId ?? (await options.ensureSubscriber(form, traceparent));
      const { channel, address } = to;
      await options.notifications.sendCode({
        ...{ tenantId: form.tenantId, subscriberId, channel, address },
        ...{ reason, traceparent },
      });
    } catch (error) {
      await store.refundSend(reservation.id, keysOf(form, to));
      throw error;
    }
    return { channel: to.channel, expires: new Date(now.getTime() + options.codeLifetime) };
  }

  return { verify, send };
}

/** Shown to the applicant. */
const reason = 'Use this code to open your draft.';

function invalidCode(): Problem {
  return new Problem('invalid-code', 'The code is wrong, expired or used.');
}
