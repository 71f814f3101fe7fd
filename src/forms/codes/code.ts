// Codes and their budgets: what is hashed and how, how many sends and how many wrong codes an hour allows. Pure. It
// never keeps a code or an address: both become HMACs before anything is stored.
import { createHmac } from 'node:crypto';
import { Problem } from '../../service/http/problem.ts';

const minute = 60_000;
export const hour = 60 * minute;

/** Milliseconds that a verified code goes on working for the account that used it. */
export const readSession = 30 * minute;
/** Milliseconds after which an unfinished try is taken for one whose process died. */
export const abandoned = minute;
/** Wrong codes for a form, or for an address, in an hour. */
export const wrongLimit = 5;
/** Sends for a form, or for an address, in an hour. */
const sendLimit = 5;
/** Milliseconds between two sends. */
const sendPause = minute;

/** An account: the subject is unique only for its issuer. */
export interface Account {
  issuer: string;
  subject: string;
}

/** Whom a budget counts for. Neither hash can be turned back without the server's key. */
export interface BudgetKeys {
  tenantId: string;
  formId: string;
  addressHash: Buffer;
}

export interface CodeHashes {
  /** Bound to the form: the same code of another form is another hash. */
  code(formId: string, code: string): Buffer;
  /** Bound to the tenant: one tenant's applicants cannot use up another's budget. */
  address(tenantId: string, channel: string, address: string): Buffer;
}

export function createCodeHashes(secret: string): CodeHashes {
  const hash = (...parts: string[]) => createHmac('sha256', secret).update(parts.join('\0')).digest();
  return {
    code: (formId, code) => hash('code', formId, code),
    address: (tenantId, channel, address) => hash('address', tenantId, channel, address),
  };
}

/** Two advisory lock keys in an order that is the same for everybody, so that no two requests wait for each other. */
export function lockKeys({ formId, addressHash }: BudgetKeys): [string, string] {
  const form = BigInt.asIntN(64, BigInt(`0x${formId.replaceAll('-', '').slice(-16)}`));
  const address = addressHash.readBigInt64BE(0);
  return form < address ? [String(form), String(address)] : [String(address), String(form)];
}

/**
 * Milliseconds until another code may be sent, 0 for now. `sent` are the sends of the last hour, newest first; those of
 * the form and of the address are judged apart.
 */
export function sendWait(sent: readonly Date[], now: Date): number {
  const [newest] = sent;
  const pause = newest ? newest.getTime() + sendPause - now.getTime() : 0;
  const limiting = sent[sendLimit - 1];
  const full = limiting ? limiting.getTime() + hour - now.getTime() : 0;
  return Math.max(pause, full, 0);
}

/**
 * Milliseconds until a code may be tried, 0 for now. `tries` are the wrong and the unfinished tries of the last hour. An
 * unfinished one may make room when its check ends; one whose process died counts as wrong, because the code may have been.
 */
export function tryWait(tries: readonly { attempted: Date; wrong: boolean }[], now: Date): number {
  const makesRoom = tries.map(({ attempted, wrong }) => {
    const ends = attempted.getTime() + abandoned;
    return wrong || ends <= now.getTime() ? attempted.getTime() + hour : ends;
  });
  const next = makesRoom.sort((one, other) => one - other)[tries.length - wrongLimit];
  return next === undefined ? 0 : next - now.getTime();
}

export function tooManySends(waitMs: number): Problem {
  return tooMany('A code was sent a moment ago, or five were in the last hour.', waitMs);
}

export function tooManyWrongCodes(waitMs: number): Problem {
  return tooMany('Too many wrong codes were tried. No code of this form works until the hour is over.', waitMs);
}

// RFC 9110 section 10.2.3: in whole seconds, rounded up so that the client does not come too early.
function tooMany(detail: string, waitMs: number): Problem {
  const headers = { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) };
  return new Problem('too-many-requests', detail, { headers });
}
