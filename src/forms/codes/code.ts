// Hashes codes and addresses, and computes when the next code may be sent or tried. All functions are pure. Codes and
// addresses are stored only as HMACs.
import { createHmac } from 'node:crypto';
import { normalAddress } from '../addresses/address.ts';
import type { Channel } from '../forms/form.ts';

const minute = 60_000;
export const hour = 60 * minute;

/** Milliseconds for which a verified code keeps working for the account that used it. */
export const readSession = 30 * minute;
/**
 * Milliseconds after which an unfinished attempt to verify a code counts as abandoned, because its process probably
 * died.
 */
export const abandoned = minute;
/** Maximum number of wrong codes per form, and per address, in an hour. */
export const wrongLimit = 5;
/** Maximum number of codes that are sent per form, and per address, in an hour. */
const sendLimit = 5;
/** Milliseconds that must pass between two sends for the same form or address. */
const sendPause = minute;

/** Identifies an account. Subjects are unique only within their issuer. */
export interface Account {
  issuer: string;
  subject: string;
}

/**
 * Identifies a form and an address. Each of them has a budget of codes. The address hash cannot be reversed without the
 * server's key.
 */
export interface BudgetKeys {
  tenantId: string;
  formId: string;
  addressHash: Buffer;
}

export type CodeHashes = ReturnType<typeof createCodeHashes>;

export function createCodeHashes(secret: string) {
  const hash = (...parts: string[]) => createHmac('sha256', secret).update(parts.join('\0')).digest();
  return {
    /**
     * Hashes a code. The form's id is part of the input, so that the same code has different hashes for different
     * forms.
     */
    code: (formId: string, code: string) => hash('code', formId, code),
    /**
     * Hashes an address. All spellings of an address have one hash, so that they share one budget. The tenant is part
     * of the input, so that each tenant has its own budget for the address.
     */
    address: (tenantId: string, channel: Channel) => hash('address', tenantId, channel.channel, normalAddress(channel)),
  };
}

/**
 * Returns a code as it was sent to the applicant: in upper case, without white space, hyphens and invisible characters.
 * Phones and mail programs change hyphens into dashes, and add invisible characters to copied text.
 */
export function normalCode(text: string): string {
  return text.replaceAll(/[\s\p{Pd}\p{Cf}]/gu, '').toUpperCase();
}

/**
 * Returns the advisory lock keys of the form and of the address in a fixed order, so that concurrent requests do not
 * deadlock.
 */
export function lockKeys({ formId, addressHash }: BudgetKeys): [string, string] {
  const form = BigInt.asIntN(64, BigInt(`0x${formId.replaceAll('-', '').slice(-16)}`));
  const address = addressHash.readBigInt64BE(0);
  return form < address ? [String(form), String(address)] : [String(address), String(form)];
}

/**
 * Returns the milliseconds until another code may be sent; 0 means now. `sent` contains the times at which codes were
 * sent in the last hour, newest first: those of the form, or those of the address.
 */
export function sendWait(sent: readonly Date[], now: Date): number {
  const [newest] = sent;
  const pause = newest ? newest.getTime() + sendPause - now.getTime() : 0;
  const limiting = sent[sendLimit - 1];
  const full = limiting ? limiting.getTime() + hour - now.getTime() : 0;
  return Math.max(pause, full, 0);
}

/**
 * Returns the milliseconds until a code may be tried; 0 means now. `attempts` contains the wrong and the unfinished
 * attempts of the last hour. An unfinished attempt counts while its check runs. If the check does not end within a
 * minute, the attempt is abandoned and counts as wrong for the rest of the hour, because its code may have been wrong.
 */
export function attemptWait(attempts: readonly { attempted: Date; wrong: boolean }[], now: Date): number {
  const ends = attempts.map(({ attempted, wrong }) => {
    const end = attempted.getTime() + abandoned;
    return wrong || end <= now.getTime() ? attempted.getTime() + hour : end;
  });
  const next = ends.sort((one, other) => one - other)[attempts.length - wrongLimit];
  return next === undefined ? 0 : next - now.getTime();
}
