// Computes the HMACs and digests with which the intake application recognises values without storing them.
import { createHash } from 'node:crypto';
import type { KeyRing } from '../../service/keys/key-ring.ts';

export type ApplyHashes = ReturnType<typeof createApplyHashes>;

export function createApplyHashes(keys: KeyRing) {
  const hmac = (text: string, purpose: string) => Buffer.from(keys.hmacs(text, purpose)[0] ?? '', 'base64url');
  return {
    /** The key of a limit, such as a client network or an email address. */
    limit: (name: string, key: string) => hmac(`${name}\0${key}`, 'apply limit'),
    code: (formId: string, code: string) => hmac(`${formId}\0${code}`, 'apply code'),
    browser: (id: string) => hmac(id, 'apply browser'),
    save: (browser: string, id: string) => hmac(`${browser}\0${id}`, 'apply save'),
    /**
     * Returns the idempotency key for the form service, which cannot tell browsers apart. The key includes the browser,
     * so that a browser which chooses the same key as another does not get the other's form.
     */
    idempotencyKey: (browser: string, key: string) =>
      createHash('sha256').update(`${browser}\0${key}`).digest('base64url'),
  };
}
