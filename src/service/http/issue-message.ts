// Describes in plain words why a value is invalid. The description never quotes the value, which may be form data, a
// code or an address.
import type { z } from 'zod';

const kinds: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
};

const units: Record<string, string> = { string: 'characters', array: 'items' };

/**
 * A function for zod's option `error`. Returns the message for an issue, or undefined to keep zod's message. If the
 * schema defines a message, zod uses that message.
 */
export function issueMessage(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${kinds[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return oneOf(issue.values);
    case 'invalid_union':
      return 'options' in issue && Array.isArray(issue.options) ? oneOf(issue.options) : 'is not valid';
    case 'too_small':
      return limit('at least', issue.minimum, issue.origin);
    case 'too_big':
      return limit('at most', issue.maximum, issue.origin);
    default:
      return undefined;
  }
}

function oneOf(values: readonly unknown[]): string {
  return `must be ${values.length > 1 ? 'one of ' : ''}${values.map(String).join(', ')}`;
}

function limit(bound: string, value: number | bigint, origin: string): string {
  const unit = units[origin];
  if (unit === undefined) return `must be ${bound} ${value}`;
  return bound === 'at least' && Number(value) === 1 ? 'must not be empty' : `must have ${bound} ${value} ${unit}`;
}
