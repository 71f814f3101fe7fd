// Tests the hashes of codes and addresses, the order of locks, and how long a caller must wait before the next code may
// be tried or sent. Responses report this wait in Retry-After.
import { describe, expect, it } from 'vitest';
import { attemptWait, createCodeHashes, lockKeys, readSession, sendWait } from './code.ts';

const now = new Date('2026-08-20T17:00:00Z');
const minute = 60_000;
const ago = (minutes: number) => new Date(now.getTime() - minutes * minute);
const wrong = (minutes: number) => ({ attempted: ago(minutes), wrong: true });
const unfinished = (minutes: number) => ({ attempted: ago(minutes), wrong: false });

describe('the wait until a code may be tried', () => {
  it.each([
    ['no tries', [], 0],
    ['four wrong codes', [1, 2, 3, 4].map(wrong), 0],
    ['five wrong codes, until the first is an hour old', [1, 2, 3, 4, 10].map(wrong), 50],
    ['six wrong codes, until the second is an hour old', [1, 2, 3, 4, 10, 20].map(wrong), 50],
    [
      'four wrong codes and a check that has just begun, until that must have ended',
      [unfinished(0.25), ...[1, 2, 3, 4].map(wrong)],
      0.75,
    ],
    [
      'four wrong codes and a check whose process died, minutes and not a second',
      [unfinished(2), ...[3, 4, 5, 6].map(wrong)],
      54,
    ],
    ['four wrong codes and a check whose process died this moment', [unfinished(1), ...[2, 3, 4, 5].map(wrong)], 55],
    ['five checks whose process died', [2, 3, 4, 5, 6].map(unfinished), 54],
  ])('after %s', (_what, tries, minutes) => {
    expect(attemptWait(tries, now)).toBe(minutes * minute);
  });
});

describe('the wait until a code may be sent', () => {
  it.each([
    ['none was sent', [], 0],
    ['one was sent 20 s ago', [1 / 3], 2 / 3],
    ['five were sent within the hour', [5, 10, 15, 20, 25], 35],
    ['five were sent, the last a moment ago', [0.5, 10, 15, 20, 59.75], 0.5],
  ])('when %s', (_what, sent, minutes) => {
    expect(sendWait(sent.map(ago), now)).toBe(minutes * minute);
  });
});

it('a code keeps working for half an hour', () => {
  expect(readSession).toBe(30 * minute);
});

describe('the hash', () => {
  const hashes = createCodeHashes('a secret');
  const hex = (hash: Buffer) => hash.toString('hex');

  it('of a code or an address is the same as in version 0.2, so that budgets and read sessions survive an upgrade', () => {
    expect(hex(hashes.code('form 1', '123456'))).toBe(
      '71f1563e9a57fceb5d53fe16e824a8d3f9fb04059d39966e98b279ec55bc9bf6',
    );
    expect(hex(hashes.address('tenant', { channel: 'email', address: 'ana@example.org' }))).toBe(
      '6577c7da4b2dab180823e4b96ce9227f1fb780cc91dc1b10f239aaf418d4070d',
    );
  });

  it.each([
    [
      'email',
      ['ana@example.org', 'Ana@Example.ORG', ' ana@example.org ', 'jose\u0301@example.org', 'jos\u00e9@example.org'],
      2,
    ],
    ['email', ['ana@example.org', 'ana+forms@example.org', 'ana@example.com'], 3],
    ['sms', ['+15550109967', '15550109967', '0015550109967', '+1 (555) 010-9967'], 1],
    ['sms', ['+15550109967', '+445550109967'], 2],
  ] as const)('of an address is the same for its spellings: %s, %j', (channel, addresses, expected) => {
    const found = addresses.map((address) => hex(hashes.address('tenant', { channel, address })));
    expect(new Set(found).size).toBe(expected);
  });

  it('differs for other parts or another secret, even if the concatenated parts are equal', () => {
    const all = [
      hashes.code('form 1', '123456'),
      hashes.code('form 11', '23456'),
      hashes.code('form 1', '123457'),
      createCodeHashes('another secret').code('form 1', '123456'),
      hashes.address('tenant', { channel: 'email', address: 'ana@example.org' }),
      hashes.address('tenant', { channel: 'sms', address: '15550109967' }),
      hashes.address('tenant', { channel: 'email', address: '15550109967' }),
      hashes.address('tenant 2', { channel: 'email', address: 'ana@example.org' }),
    ].map(hex);
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('the locks of a form and an address', () => {
  const formId = (end: string) => `0198b8a0-1234-7000-${end.slice(0, 4)}-${end.slice(4)}`;
  const keys = (end: string, address: bigint) => {
    const addressHash = Buffer.alloc(32, 0xff);
    addressHash.writeBigInt64BE(address);
    return lockKeys({ tenantId: 'tenant', formId: formId(end), addressHash });
  };

  it.each([
    ['the form first', '0000000000000005', 7n, ['5', '7']],
    ['the address first', '0000000000000005', 3n, ['3', '5']],
    ['negative numbers, as Postgres has them', 'ffffffffffffffff', -2n, ['-2', '-1']],
    ['equal numbers', '0000000000000005', 5n, ['5', '5']],
  ])('are %s', (_what, end, address, expected) => {
    expect(keys(end, address)).toEqual(expected);
  });
});
