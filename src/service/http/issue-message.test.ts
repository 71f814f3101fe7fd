// Tests the messages that describe an invalid value to a client.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { issueMessage } from './issue-message.ts';

const messages = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value, { error: issueMessage }).error?.issues.map(({ message }) => message);

describe('the message about an invalid value', () => {
  const channel = z.discriminatedUnion('channel', [
    z.object({ channel: z.literal('email') }),
    z.object({ channel: z.literal('sms') }),
  ]);
  const cases: [string, z.ZodType, unknown, string][] = [
    ['a missing member', z.string(), undefined, 'is required'],
    ['null for a string', z.string(), null, 'must be a string'],
    ['a list for a string', z.string(), ['a'], 'must be a string'],
    ['text for a number', z.coerce.number(), 'abc', 'must be a number'],
    ['a fraction for a whole number', z.coerce.number().int(), '1.5', 'must be a whole number'],
    ['text for a flag', z.boolean(), 'true', 'must be true or false'],
    ['a list for an object', z.object({}), [], 'must be an object'],
    ['a list for a record', z.record(z.string(), z.unknown()), [], 'must be an object'],
    ['an object for a list', z.array(z.string()), {}, 'must be an array'],
    ['too small a number', z.number().min(1), 0, 'must be at least 1'],
    ['too large a number', z.number().max(100), 101, 'must be at most 100'],
    ['an empty text', z.string().min(1), '', 'must not be empty'],
    ['too short a text', z.string().min(3), 'a', 'must have at least 3 characters'],
    ['too long a text', z.string().max(3), 'abcd', 'must have at most 3 characters'],
    ['too long a list', z.array(z.string()).max(1), ['a', 'b'], 'must have at most 1 items'],
    ['another value', z.enum(['submit', 'unlock']), 'lock', 'must be one of submit, unlock'],
    ['another literal', z.literal('sms'), 'fax', 'must be sms'],
    ['another kind of a thing', channel, { channel: 'fax' }, 'must be one of email, sms'],
    ['none of several shapes', z.union([z.string(), z.number()]), true, 'is not valid'],
  ];

  it.each(cases)('is in plain words: %s', (_what, schema, value, message) => {
    expect(messages(schema, value)).toEqual([message]);
  });

  it('is the message of the schema if it has one', () => {
    expect(messages(z.string().regex(/^a$/, 'must be the letter a'), 'b')).toEqual(['must be the letter a']);
  });

  it('never quotes the value', () => {
    for (const [, schema, value] of cases)
      expect(messages(schema, typeof value === 'string' ? 'canary' : value)?.join() ?? '').not.toContain('canary');
  });
});
