// Encrypts (seals) stored secrets and makes keyed digests, with a ring of keys that can be rotated: the first key seals,
// all of them open. A sealed text opens only for the context that it was sealed for. No error holds a key.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { isSameText } from '../../service/same-text.ts';

export interface KeyRing {
  /** The name of the key that seals; a sealed text begins with the name and a dot. */
  readonly currentKey: string;
  /**
   * AES-256-GCM. `context` says what the text is and whose (`refresh token of session 1`); it is authenticated, not
   * stored. Returns `kid.nonce.ciphertext.tag`, the last three in base64url.
   */
  seal(plaintext: string, context: string): string;
  /** Throws KeyRingError if the text was changed, or sealed for another context or with a key that is not in the ring. */
  open(sealed: string, context: string): string;
  /** HMAC-SHA-256 with the current key, base64url. Equal texts of different purposes have unrelated digests. */
  hmac(text: string, purpose: string): string;
  /** The same with every key of the ring, the current one first: for lookups of digests made with an older key. */
  hmacs(text: string, purpose: string): string[];
  /** Whether `digest` was made of `text` with any key of the ring; takes the same time for every digest. */
  isHmac(digest: string, text: string, purpose: string): boolean;
  /** False if the text should be sealed again, because the ring has a newer key. */
  isCurrent(sealed: string): boolean;
}

/** An invalid ring or sealed text. Its message quotes neither. */
export class KeyRingError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KeyRingError';
  }
}

interface Key {
  id: string;
  bytes: Buffer;
  sealing: Buffer;
}

const shortestKey = 32;
/** Of the nonce, from which the message's key is derived; the rest is the initialization vector (NIST SP 800-38D, section 8.2.2). */
const saltLength = 16;
const vectorLength = 12;
const tagLength = 16;
const keyPattern = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_-]+={0,2})$/;

/**
 * Reads `kid:base64key,kid2:base64key`; each key has 32 bytes or more. To rotate, add the new key at the end in every
 * pod, then move it to the front, then drop the old one when nothing is sealed under it: pods that differ by one of
 * these steps open each other's texts. Throws KeyRingError.
 */
export function createKeyRing(keys: string): KeyRing {
  const ring = parseKeys(keys);
  const [current] = ring;
  if (!current) throw new KeyRingError('the key ring is empty');
  const derived = new Map<string, Buffer>();
  const digest = (key: Key, text: string, purpose: string) =>
    createHmac('sha256', purposeKey(derived, key, purpose))
      .update(text)
      .digest('base64url');
  return {
    currentKey: current.id,
    seal: (plaintext, context) => seal(current, plaintext, context),
    open: (sealed, context) => open(ring, sealed, context),
    hmac: (text, purpose) => digest(current, text, purpose),
    hmacs: (text, purpose) => ring.map((key) => digest(key, text, purpose)),
    isHmac: (given, text, purpose) =>
      ring.map((key) => isSameText(digest(key, text, purpose), given)).some((matches) => matches),
    isCurrent: (sealed) => sealed.startsWith(`${current.id}.`),
  };
}

/** Why a text is not a key ring, without quoting it; undefined for a valid one. */
export function keyRingProblem(keys: string): string | undefined {
  try {
    createKeyRing(keys);
    return undefined;
  } catch (error) {
    if (error instanceof KeyRingError) return error.message;
    throw error;
  }
}

function parseKeys(keys: string): Key[] {
  const ring: Key[] = [];
  for (const [index, item] of keys.split(',').entries()) {
    const [, id = '', text = ''] = keyPattern.exec(item.trim()) ?? [];
    const bytes = Buffer.from(text, 'base64');
    const place = `key ${index + 1} of the ring`;
    if (id === '') throw new KeyRingError(`${place} is not written as name:base64`);
    if (bytes.length < shortestKey) throw new KeyRingError(`${place} has less than ${shortestKey} bytes`);
    if (ring.some((key) => key.id === id)) throw new KeyRingError(`${place} has the name of an earlier one`);
    ring.push({ id, bytes, sealing: derive(bytes, 'seal') });
  }
  return ring;
}

/** RFC 5869: a separate key for each use. */
function derive(bytes: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', bytes, '', `formgate ${use}`, 32));
}

function purposeKey(derived: Map<string, Buffer>, key: Key, purpose: string): Buffer {
  const name = `${key.id} ${purpose}`;
  const known = derived.get(name);
  if (known) return known;
  const made = derive(key.bytes, `hmac ${purpose}`);
  derived.set(name, made);
  return made;
}

/**
 * Every message has a separate key. With one key for all, random vectors would be safe for 2^32 messages only
 * (NIST SP 800-38D, section 8.3), and a busy session store writes more.
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
  const [nonce, text, tag] = parts.map((part) => Buffer.from(part, 'base64url'));
  if (!nonce || !text || !tag || parts.length !== 3 || nonce.length !== saltLength + vectorLength)
    throw new KeyRingError('this is no sealed text');
  const key = ring.find((candidate) => candidate.id === id);
  if (!key) throw new KeyRingError('the text is sealed under a key that is not in the ring');
  try {
    const decipher = createDecipheriv('aes-256-gcm', messageKey(key, nonce), nonce.subarray(saltLength), {
      authTagLength: tagLength,
    });
    decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new KeyRingError('the text was changed, or sealed for another context', error);
  }
}
