// Normalises applicants' addresses, and hashes them for the search by address. All functions are pure. The database
// contains plain addresses only in the rows of forms; the search index contains only HMACs.
import { createHmac } from 'node:crypto';
import type { Channel } from '../forms/form.ts';

/**
 * Length of a hash in bytes. At 128 bits, two HMACs are never equal by chance, and the index of 10,000,000 forms stays
 * small.
 */
const hashBytes = 16;

export type AddressHashes = ReturnType<typeof createAddressHashes>;

export function createAddressHashes(secret: string) {
  const hash = (...parts: string[]) =>
    createHmac('sha256', secret).update(parts.join('\0')).digest().subarray(0, hashBytes);

  /**
   * Hashes one address. The prefix `applicant-address` makes this hash differ from the hash of the same address in
   * `codes/code.ts`. The rows that count codes for an address remain after the deletion of the address's forms. Because
   * the hashes differ, nobody can match these rows with the index.
   */
  const hashOf = (tenantId: string, channel: Channel) =>
    hash('applicant-address', tenantId, channel.channel, normalAddress(channel));

  return {
    /** Identifies the HMAC key. The table `address_index` stores this id, so that a pod notices a change of the key. */
    keyId: hash('applicant-address-key'),

    one: hashOf,

    /** Returns the hashes of the channels' addresses, without duplicates. */
    all(tenantId: string, channels: readonly Channel[]): Buffer[] {
      const hashes = channels.map((channel) => hashOf(tenantId, channel));
      return hashes.filter((one, index) => hashes.findIndex((other) => other.equals(one)) === index);
    },
  };
}

/** Returns an address in the one spelling that is hashed. Equal results mean that messages reach the same person. */
export function normalAddress({ channel, address }: Channel): string {
  return channel === 'email' ? normalEmail(address) : normalNumber(address);
}

function normalEmail(address: string): string {
  return address.normalize('NFC').trim().toLowerCase();
}

/**
 * Keeps the digits of a telephone number, without a leading 00. `+1 (555) 010-9967`, `0015550109967` and `15550109967`
 * are therefore the same number.
 */
function normalNumber(address: string): string {
  return address.replaceAll(/\D/g, '').replace(/^00/, '');
}

/**
 * Returns the address to search for: an email address if it has an `@`, otherwise a telephone number; undefined if
 * neither.
 */
export function parseAddress(text: string): Channel | undefined {
  const address = text.trim();
  if (address.length > 254) return undefined;
  if (/^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(address)) return { channel: 'email', address };
  // E.164 allows 15 digits; the prefix 00 may precede them.
  return /^\+?(?:[\s().-]*\d){6,17}[\s().-]*$/.test(address) ? { channel: 'sms', address } : undefined;
}
