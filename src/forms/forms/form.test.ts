// Tests masked addresses, entity tags, and the channel to which codes are sent.
import { describe, expect, it } from 'vitest';
import { cpuOf } from '../../../test/support/stopwatch.ts';
import { codeChannel, maskAddress, normaliseApplicant, parseIfMatch } from './form.ts';

const email = (address: string) => ({ channel: 'email' as const, address });
const sms = (address: string) => ({ channel: 'sms' as const, address });

describe('codeChannel', () => {
  it('is the first email channel or, without one, the first channel', () => {
    expect(codeChannel({ channels: [sms('1'), email('a'), email('b')] })).toEqual(email('a'));
    expect(codeChannel({ channels: [sms('1'), sms('2')] })).toEqual(sms('1'));
    expect(codeChannel({ channels: [sms('1'), email('a')] }, ['sms'])).toEqual(sms('1'));
    expect(codeChannel({ channels: [sms('1')] }, ['email'])).toBeUndefined();
    expect(codeChannel({ channels: [] })).toBeUndefined();
  });
});

describe('maskAddress', () => {
  it.each([
    [email('ana@example.org'), 'a***@example.org'],
    [email('"a@b"@example.org'), '"***@example.org'],
    [email('😀ana@example.org'), '😀***@example.org'],
    [email('nonsense'), 'n***'],
    [sms('+15550109967'), '***67'],
  ])('masks %j', (channel, masked) => {
    expect(maskAddress(channel)).toBe(masked);
  });
});

describe('normaliseApplicant', () => {
  it('stores email addresses in lower case and telephone numbers without punctuation', () => {
    expect(normaliseApplicant({ channels: [email('Ana@Example.ORG'), sms('+1 (555) 010-99.67')] })).toEqual({
      channels: [email('ana@example.org'), sms('+15550109967')],
    });
  });
});

describe('parseIfMatch', () => {
  it.each([
    [undefined, undefined],
    ['*', undefined],
    ['"7"', ['7']],
    [' "7", "8" ', ['7', '8']],
    ['W/"7"', ['7']],
    ['W/"7", "8"', ['7', '8']],
    ['"abc"', []],
    ['"07"', []],
    ['"1234567890123456789"', []],
    ['', null],
    ['7', null],
    ['"7', null],
    ['"7",', null],
  ])('reads %j as %j', (header, revisions) => {
    expect(parseIfMatch(header)).toEqual(revisions);
  });

  it('takes no longer for a hostile header', () => {
    const milliseconds = cpuOf(() => {
      parseIfMatch(`${'"x",'.repeat(20_000)}x`);
      parseIfMatch(`${' '.repeat(50_000)}x`);
    });
    // A regular expression with quadratic time would take a minute.
    expect(milliseconds).toBeLessThan(10_000);
  });
});
