// Sends and verifies codes through the notification service, within Formgate's budgets. Used codes are rejected without
// a call to the notification service. If the service certainly did not check a code, the attempt does not count. If the
// service's response was lost, the service may have checked the code: the attempt then counts once, and the same code
// may be tried again. A send does not count if the code certainly was not sent. It counts if the code may have been
// sent.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Notifications } from '../../platform/notifications.ts';
import { isRejection, isUndecided, PlatformError } from '../../platform/platform-error.ts';
import { type Clock, later } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { type Applicant, type Channel, codeChannel, type Form, type Language } from '../forms/form.ts';
import type { SubscribeNow } from '../outbox/subscribe-now.ts';
import type { Account, BudgetKeys, CodeHashes } from './code.ts';
import type { CodeOutcome } from './code-metrics.ts';
import type { CodeAttempt, CodeStore } from './store.ts';

export interface CodeRequest {
  form: Form;
}

export interface VerificationOptions {
  store: CodeStore;
  hashes: CodeHashes;
  notifications: Pick<Notifications, 'sendCode' | 'checkCode' | 'codeChannels'>;
  subscribeNow: SubscribeNow;
  /** The kinds of channels that the operator allows for codes. */
  channels: readonly string[];
  /** Lifetime of the notification service's codes in milliseconds. */
  codeLifetime: number;
  clock: Clock;
  /** Waits between two polls while another request checks the same code. Only tests replace this function. */
  wait?: (milliseconds: number) => Promise<unknown>;
  count(outcome: CodeOutcome): void;
}

export type Verification = ReturnType<typeof createVerification>;

/**
 * Maximum number of polls of the database while a concurrent request checks the same code. All pauses together take
 * longer than a check.
 */
const mostPolls = 45;
/** Milliseconds between two polls. The pause doubles from `first` up to `longest`. */
const pause = { first: 25, longest: 500 };

export function createVerification(options: VerificationOptions) {
  const { store, hashes, clock, count, wait = sleep } = options;

  function keysOf({ id, tenantId }: Form, channel: Channel): BudgetKeys {
    return { tenantId, formId: id, addressHash: hashes.address(tenantId, channel) };
  }

  /** Returns the channel to which an applicant's codes are sent. Throws Problem `no-channel` if there is none. */
  function requireChannel(applicant: Applicant): Channel {
    const channel = codeChannel(applicant, usableChannels(options));
    if (channel) return channel;
    throw new Problem('no-channel', 'The applicant has no channel that a code could be sent to.');
  }

  return {
    requireChannel,

    /**
     * Verifies a code. Resolves if the code is correct, or already has an open session for the account. Throws
     * `invalid-code`, `too-many-requests`, `unavailable` if other requests are still checking the same code, or
     * PlatformError.
     */
    async verify(request: CodeRequest & { account: Account; code: string }): Promise<void> {
      const { form, code } = request;
      const { issuer, subject } = request.account;
      const channel = codeChannel(form.applicant, usableChannels(options));
      if (!channel) throw rejected(options, invalidCode());
      const attempt: CodeAttempt = {
        ...keysOf(form, channel),
        ...{ issuer, subject, codeHash: hashes.code(form.id, code), now: clock() },
      };
      const settle = async (id: string, isRepeated: boolean): Promise<void> => {
        const isRight = await check(options, request, channel, id).catch(async (error: unknown) => {
          // An earlier check may have used up the code, so a later one must reuse the reservation's idempotency key.
          await (isRepeated || isUndecided(error, 'notifications')
            ? store.leaveUndecided(id, attempt)
            : store.refundAttempt(id, attempt));
          throw error;
        });
        const settled = isRight ? store.settleRight(id, attempt) : store.settleWrong(id, attempt);
        const isOpen = await settled.catch(async (error: unknown) => {
          // The code may be used up. A further try repeats the check with the same idempotency key, and does not wait.
          await store.leaveUndecided(id, attempt).catch(() => undefined);
          throw error;
        });
        if (!isOpen) throw rejected(options, invalidCode());
        count('verified');
      };
      for (let poll = 0; poll < mostPolls; poll += 1) {
        const reservation = await store.reserveAttempt(attempt);
        if (reservation.outcome === 'session') return;
        if (reservation.outcome === 'used') throw rejected(options, invalidCode());
        if (reservation.outcome === 'spent') throw rejected(options, tooManyWrong(reservation.waitMs));
        if (reservation.outcome === 'reserved') return settle(reservation.id, reservation.isRepeated);
        await wait(Math.min(pause.first * 2 ** poll, pause.longest));
      }
      throw new Problem('unavailable', 'The same code is being checked.', { headers: { 'Retry-After': '5' } });
    },

    /**
     * Sends a code to the applicant. Throws `no-channel`, `too-many-requests`, `gone` if the form was deleted, or
     * PlatformError. For a form without a subscriber, also throws `unavailable` if another process is still subscribing
     * the applicant (see {@link SubscribeNow}).
     */
    async send(request: CodeRequest): Promise<{ channel: Channel['channel']; expires: Date }> {
      const { form } = request;
      const to = requireChannel(form.applicant);
      const now = clock();
      const reservation = await store.reserveSend(keysOf(form, to), now);
      if ('waitMs' in reservation)
        throw tooMany('A code was sent a moment ago, or five were in the last hour.', reservation.waitMs);
      await sendReserved(options, form, to, () => store.refundSend(reservation.id, keysOf(form, to)));
      return { channel: to.channel, expires: later(now, options.codeLifetime) };
    },
  };
}

/**
 * Returns the allowed kinds of channels to which the notification service can send codes. Returns all allowed kinds if
 * the service does not list its channels.
 */
function usableChannels({ channels, notifications }: VerificationOptions): string[] {
  const served = notifications.codeChannels();
  return channels.filter((kind) => served?.includes(kind) ?? true);
}

async function check(
  { notifications }: VerificationOptions,
  { form, code }: CodeRequest & { code: string },
  to: Channel,
  attempt: string,
): Promise<boolean> {
  // The form has no subscriber, so no code has been sent.
  if (!form.subscriberId) return false;
  try {
    const { tenantId, subscriberId } = form;
    const { channel, address } = to;
    const idempotencyKey = `code-attempt-${attempt}`;
    return await notifications.checkCode({
      tenantId,
      subscriberId,
      channel,
      address,
      code,
      idempotencyKey,
    });
  } catch (error) {
    if (isRejection(error, 'notifications', [400, 404])) return false;
    throw error;
  }
}

/** Sends a code whose send is reserved. Calls `refund` if the code certainly was not sent. */
async function sendReserved(
  options: VerificationOptions,
  form: Form,
  to: Channel,
  refund: () => Promise<void>,
): Promise<void> {
  let isCalled = false;
  const send = async (subscriberId: string) => {
    isCalled = true;
    await sendCode(options, form, { subscriberId, ...to });
  };
  try {
    const subscriberId = form.subscriberId ?? (await options.subscribeNow(form.id));
    await send(subscriberId).catch(async (error: unknown) => {
      if (!isSubscriberUnknown(error)) throw error;
      isCalled = false;
      await send(await options.subscribeNow(form.id, subscriberId));
    });
  } catch (error) {
    options.count(isUndeliverable(error) ? 'undeliverable' : 'not-sent');
    if (!isCalled || !mayHaveSent(error)) await refund();
    throw error;
  }
  options.count('sent');
}

type SendRequest = Omit<Parameters<Notifications['sendCode']>[0], 'reason' | 'language' | 'tenantId'>;

async function sendCode({ notifications }: VerificationOptions, form: Form, request: SendRequest): Promise<void> {
  const language = form.applicant.language ?? 'en';
  try {
    await notifications.sendCode({ ...request, tenantId: form.tenantId, language, reason: reasons[language] });
  } catch (error) {
    // The subscriber has this channel, so a 400 means that the service has no provider for the channel, or that the
    // mail server refused the address.
    if (isRejection(error, 'notifications', [400]))
      throw new Problem('no-channel', 'The platform cannot send codes to the applicant’s address.', { cause: error });
    throw error;
  }
}

/** True if no code can reach the applicant, although the notification service works. */
function isUndeliverable(error: unknown): boolean {
  return error instanceof Problem && (error.slug === 'no-channel' || error.slug === 'gone');
}

/** True if the notification service itself, and not a proxy, responded that it has no such subscriber. */
function isSubscriberUnknown(error: unknown): boolean {
  const isRejected = isRejection(error, 'notifications', [404]);
  return isRejected && error instanceof PlatformError && error.rejection !== undefined;
}

/**
 * True if the notification service may have sent the code although the call failed. Status 500 means that the delivery
 * failed. A status from 300 to 499 means that the call was rejected. In both cases, no code was sent (decision 0085).
 */
function mayHaveSent(error: unknown): boolean {
  if (!(error instanceof PlatformError) || !isUndecided(error, 'notifications')) return false;
  const status = error.upstreamStatus ?? 0;
  return status < 300 || status > 500;
}

/** The reason that the applicant sees in the message with the code, in the language of the form. */
const reasons: Record<Language, string> = {
  en: 'Use this code to open your draft.',
  fr: 'Utilisez ce code pour ouvrir votre brouillon.',
};

function invalidCode(): Problem {
  return new Problem('invalid-code', 'The code is wrong, expired or used.');
}

function rejected({ count }: VerificationOptions, problem: Problem): Problem {
  count('rejected');
  return problem;
}

function tooManyWrong(waitMs: number): Problem {
  return tooMany('Too many wrong codes were tried. No code of this form works until the hour is over.', waitMs);
}

// Retry-After has whole seconds (RFC 9110 section 10.2.3). They are rounded up, so that the client does not retry too
// early.
function tooMany(detail: string, waitMs: number): Problem {
  const headers = { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) };
  return new Problem('too-many-requests', detail, { headers });
}
