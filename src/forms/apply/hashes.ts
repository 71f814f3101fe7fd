// Computes HMACs and digests. The intake application uses them to recognise values that it does not store.
import { createHash } from 'node:crypto';
import type { KeyRing } from '../../service/keys/key-ring.ts';

export type ApplyHashes = ReturnType<typeof createApplyHashes>;

export function createApplyHashes(keys: KeyRing) {
  const hmacs = (text: string, purpose: string) =>
    keys.hmacs(text, purpose).map((hmac) => Buffer.from(hmac, 'base64url'));
  return {
    /**
     * Hashes the key to which a limit applies, such as a client network or an email address. `name` is the name of the
     * limit.
     */
    limit: (name: string, key: string) => hmacs(`${name}\0${key}`, 'apply limit')[0] ?? Buffer.alloc(0),
    /** One hash for each key of the ring, because pods order the keys differently during a rotation. */
    code: (formId: string, code: string) => hmacs(`${formId}\0${code}`, 'apply code'),
    /** One hash for each key of the ring. The keys have the same order as for the hashes of `code`. */
    browser: (id: string) => hmacs(id, 'apply browser'),
    /** One hash for each key of the ring. The first is stored; all are looked up. */
    save: (browser: string, id: string) => hmacs(`${browser}\0${id}`, 'apply save'),
    /**
     * Returns the idempotency key for the form service, which cannot tell browsers apart. The browser's id is part of
     * the key, so that two browsers with the same `key` do not get the same form.
     */
    idempotencyKey: (browser: string, key: string) =>
      createHash('sha256').update(`${browser}\0${key}`).digest('base64url'),
  };
}
