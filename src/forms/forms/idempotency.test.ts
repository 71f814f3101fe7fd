import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { createClaim } from './idempotency.ts';

const now = new Date('2026-11-30T12:00:00Z');
const scope = { tenantId: 'demo', issuer: 'https://access.example.org', subject: 'ana', route: 'POST /form/v1/forms' };
const claim = (secret: string) => createClaim(secret, 'the key', { ...scope, body: { b: 1, a: 2 }, now });
const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex');

it('the key and the body are hashed with the secret, each for its purpose', () => {
  for (const secret of ['one secret', 'another secret']) {
    const { keyHash, bodyHash } = claim(secret);
    expect(keyHash.toString('hex')).toBe(hmac(secret, 'idempotency-key\0the key'));
    expect(bodyHash.toString('hex')).toBe(hmac(secret, 'idempotency-body\0{"a":2,"b":1}'));
  }
});

it('a claim contains neither the key nor the body in any other form', () => {
  const { keyHash, bodyHash, ...others } = claim('one secret');
  expect(others).toEqual({ ...scope, expired: new Date('2026-11-29T12:00:00Z') });
  expect([keyHash.length, bodyHash.length]).toEqual([32, 32]);
});
