// Encrypts (seals) stored secrets, and derives further secrets, with a ring of keys that can be rotated. The first key
// seals; every key opens (decrypts). A sealed text opens only in the context for which it was sealed. No error contains
// a key.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';

export interface KeyRing {
  /** Name of the key that seals. A sealed text begins with the name of its key and a dot. */
  readonly currentKey: string;
  /**
   * Encrypts with AES-256-GCM. `context` identifies the text and its owner (`refresh token of session 1`); it is
   * authenticated but not stored. Returns `kid.nonce.ciphertext.tag`, the last three in base64url.
   */
  seal(plaintext: string, context: string): string;
  /**
   * Decrypts a sealed text. Throws KeyRingError if the text was changed, or was sealed for another context or with a
   * key outside the ring.
   */
  open(sealed: string, context: string): string;
  /**
   * Returns one HMAC-SHA-256 of the text for each key, in base64url, the current key first. Each purpose has its own
   * derived key.
   */
  hmacs(text: string, purpose: string): string[];
}

/** Thrown if the ring or a sealed text is invalid. The message quotes neither. */
export class KeyRingError extends Error {
  override name = 'KeyRingError';
}

interface Key {
  id: string;
  bytes: Buffer;
  sealing: Buffer;
}

const shortestKey = 32;
/**
 * The message key is derived from this number of bytes at the start of the nonce. The rest of the nonce is the
 * initialisation vector of GCM.
 */
const saltLength = 16;
const vectorLength = 12;
const tagLength = 16;
const keyPattern = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_-]+={0,2})$/;

/**
 * Reads `kid:base64key,kid2:base64key`; each key has at least 32 bytes. To rotate, add the new key at the end in every
 * pod, then move it to the front, and remove the old key when no stored text is sealed with it any more. During each
 * step, pods with the old and the new ring can open each other's texts. Throws KeyRingError.
 */
export function createKeyRing(keys: string): KeyRing {
  const ring = parseKeys(keys);
  const [current] = ring;
  return {
    currentKey: current.id,
    seal: (plaintext, context) => seal(current, plaintext, context),
    open: (sealed, context) => open(ring, sealed, context),
    hmacs: (text, purpose) =>
      ring.map(({ bytes }) =>
        createHmac('sha256', derive(bytes, `hmac ${purpose}`))
          .update(text)
          .digest('base64url'),
      ),
  };
}

/** Returns why a key ring is invalid, without quoting it; undefined if it is valid. */
export function keyRingProblem(keys: string): string | undefined {
  try {
    createKeyRing(keys);
    return undefined;
  } catch (error) {
    if (error instanceof KeyRingError) return error.message;
    throw error;
  }
}

/** Returns the schema of a setting that holds a key ring. */
export function keyRingSetting() {
  return z.string().superRefine((keys, context) => {
    const problem = keyRingProblem(keys);
    if (problem !== undefined) context.addIssue(problem);
  });
}

/** Parses a ring. Throws KeyRingError for an invalid item. An empty text is one invalid item, so no ring is empty. */
function parseKeys(keys: string): [Key, ...Key[]] {
  const ring: Key[] = [];
  for (const [index, item] of keys.split(',').entries()) {
    const [, id = '', text = ''] = keyPattern.exec(item.trim()) ?? [];
    const bytes = Buffer.from(text, 'base64');
    const name = `key ${index + 1} of the ring`;
    if (id === '') throw new KeyRingError(`${name} is not written as name:base64`);
    if (bytes.length < shortestKey) throw new KeyRingError(`${name} has fewer than ${shortestKey} bytes`);
    if (ring.some((key) => key.id === id)) throw new KeyRingError(`${name} has the same name as an earlier key`);
    ring.push({ id, bytes, sealing: derive(bytes, 'seal') });
  }
  return ring as [Key, ...Key[]];
}

/** Derives a separate key for each use (HKDF, RFC 5869). */
function derive(bytes: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', bytes, '', `formgate ${use}`, 32));
}

/**
 * Derives a separate key for each message. One key with random vectors would be safe for only 2^32 messages (NIST SP
 * 800-38D, section 8.3), and a busy session store writes more.
 */
function messageKey(key: Key, nonce: Buffer): Buffer {
  return createHmac('sha256', key.sealing).update(nonce.subarray(0, saltLength)).digest();
}

function seal(key: Key, plaintext: string, context: string): string {
  const nonce = randomBytes(saltLength + vectorLength);
  const cipher = createCipheriv('aes-256-gcm', messageKey(key, nonce), nonce.subarray(saltLength), {
    authTagLength: tagLength,
  });
  cipher.setAAD(Buffer.from(context));
  const text = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  return [key.id, ...[nonce, text, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.');
}

function open(ring: Key[], sealed: string, context: string): string {
  const [id, ...parts] = sealed.split('.');
  const [nonce, text, tag] = parts.map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer, Buffer];
  if (parts.length !== 3 || nonce.length !== saltLength + vectorLength)
    throw new KeyRingError('the text is not sealed');
  const key = ring.find((candidate) => candidate.id === id);
  if (!key) throw new KeyRingError('the text is sealed under a key that is not in the ring');
  try {
    const decipher = createDecipheriv('aes-256-gcm', messageKey(key, nonce), nonce.subarray(saltLength), {
      authTagLength: tagLength,
    });
    decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new KeyRingError('the text was changed, or sealed for another context', { cause: error });
  }
}
