// Computes HMACs and digests. The intake application uses them to recognize values that it does not store.
import { createHash } from 'node:crypto';
import type { KeyRing } from '../../service/keys/key-ring.ts';

export type ApplyHashes = ReturnType<typeof createApplyHashes>;

export function createApplyHashes(keys: KeyRing) {
  const hmac = (text: string, purpose: string) => Buffer.from(keys.hmacs(text, purpose)[0] ?? '', 'base64url');
  return {
    /**
     * Hashes the key to which a limit applies, such as a client network or an email address. `name` is the name of the
     * limit.
     */
    limit: (name: string, key: string) => hmac(`${name}\0${key}`, 'apply limit'),
    code: (formId: string, code: string) => hmac(`${formId}\0${code}`, 'apply code'),
    browser: (id: string) => hmac(id, 'apply browser'),
    save: (browser: string, id: string) => hmac(`${browser}\0${id}`, 'apply save'),
    /**
     * Returns the idempotency key for the form service, which cannot tell browsers apart. The browser's id is part of
     * the key, so that two browsers with the same `key` do not get the same form.
     */
    idempotencyKey: (browser: string, key: string) =>
      createHash('sha256').update(`${browser}\0${key}`).digest('base64url'),
  };
}
