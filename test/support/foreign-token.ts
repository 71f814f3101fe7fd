// Makes tokens that no honest provider would issue, and valid tokens with any claims.
import { randomUUID } from 'node:crypto';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import type { ForeignToken } from './test-access.ts';

/** Makes a token with these claims. `sign` signs a payload with the realm's key. */
export async function makeForeignToken(
  issuer: string,
  claims: JWTPayload,
  { key = 'realm', now = new Date() }: ForeignToken,
  sign: (payload: JWTPayload) => Promise<string>,
): Promise<string> {
  const seconds = Math.floor(now.getTime() / 1000);
  const times = { iat: seconds, exp: seconds + 3_600 };
  const payload: JWTPayload = {
    ...{ iss: issuer, sub: randomUUID(), typ: 'Bearer', azp: 'foreign', ...times, jti: randomUUID() },
    ...claims,
  };
  return key === 'realm' ? sign(payload) : signWithout(key, payload);
}

async function signWithout(key: 'unknown' | 'none' | 'hmac', payload: JWTPayload): Promise<string> {
  if (key === 'unknown') {
    const { privateKey } = await generateKeyPair('RS256');
    return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: 'unknown' }).sign(privateKey);
  }
  if (key === 'hmac') {
    return new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode('x'.repeat(32)));
  }
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode(payload)}.`;
}
