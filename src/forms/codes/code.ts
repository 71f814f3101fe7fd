// Codes and their budgets: what is hashed and how, how many sends and how many wrong codes an hour allows. Pure. Codes and
// addresses become HMACs before anything is stored.
import { createHmac } from 'node:crypto';

const minute = 60_000;
export const hour = 60 * minute;

/** Milliseconds for which a verified code keeps working for the account that used it. */
export const readSession = 30 * minute;
/** Milliseconds after which an unfinished attempt is assumed to belong to a process that died. */
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

/** What a budget counts for. Hashes cannot be reversed without the server's key. */
export interface BudgetKeys {
  tenantId: string;
  formId: string;
  addressHash: Buffer;
}

export type CodeHashes = ReturnType<typeof createCodeHashes>;

export function createCodeHashes(secret: string) {
  const hash = (...parts: string[]) => createHmac('sha256', secret).update(parts.join('\0')).digest();
  return {
    /** Bound to the form: the same code has another hash for another form. */
    code: (formId: string, code: string) => hash('code', formId, code),
    /** Bound to the tenant: one tenant's applicants cannot use up another's budget. */
    address: (tenantId: string, channel: string, address: string) => hash('address', tenantId, channel, address),
  };
}

/** Two advisory lock keys in a fixed order, so that no two requests deadlock. */
export function lockKeys({ formId, addressHash }: BudgetKeys): [string, string] {
  const form = BigInt.asIntN(64, BigInt(`0x${formId.replaceAll('-', '').slice(-16)}`));
  const address = addressHash.readBigInt64BE(0);
  return form < address ? [String(form), String(address)] : [String(address), String(form)];
}

/**
 * Milliseconds until another code may be sent, 0 for now. `sent` are the sends of the last hour, newest first, either for
 * the form or for the address.
 */
export function sendWait(sent: readonly Date[], now: Date): number {
  const [newest] = sent;
  const pause = newest ? newest.getTime() + sendPause - now.getTime() : 0;
  const limiting = sent[sendLimit - 1];
  const full = limiting ? limiting.getTime() + hour - now.getTime() : 0;
  return Math.max(pause, full, 0);
}

/**
 * Milliseconds until a code may be tried, 0 for now. `attempts` are the wrong and the unfinished ones of the last hour. An
 * unfinished attempt may not count any more once its check ends; an abandoned one counts as wrong, because it may have been.
 */
export function attemptWait(attempts: readonly { attempted: Date; wrong: boolean }[], now: Date): number {
  const ends = attempts.map(({ attempted, wrong }) => {
    const end = attempted.getTime() + abandoned;
    return wrong || end <= now.getTime() ? attempted.getTime() + hour : end;
  });
  const next = ends.sort((one, other) => one - other)[attempts.length - wrongLimit];
  return next === undefined ? 0 : next - now.getTime();
}
