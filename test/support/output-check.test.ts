// Tests that output-check.ts finds the secrets and the invalid audit events that it looks for.
import { expect, it } from 'vitest';
import { serviceEvent } from '../../src/service/operations/audit.ts';
import { problemOfLine } from './output-check.ts';

it.each([
  ['a token', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'],
  ['a bearer', 'Bearer 0123456789'],
  ['a cookie', 'formgate_session=s%3Aabc'],
  ['an email address', 'ana@example.org'],
  ['a canary', 'canary-field-1'],
])('finds %s in a line', (name, secret) => {
  expect(problemOfLine(JSON.stringify({ msg: 'request', route: `/x ${secret}` }))).toBe(`holds ${name}`);
});

it('accepts an ordinary line, and a valid audit event', () => {
  expect(problemOfLine('{"msg":"request","route":"/form/v1/forms/:formId","tenant":"urn:example:x"}')).toBeUndefined();
  const audit = serviceEvent({ action: 'client.remove', by: 'reconciler', id: 'web' });
  expect(problemOfLine(JSON.stringify({ msg: 'x', audit }))).toBeUndefined();
});

it('rejects an audit event with another member, action or outcome', () => {
  const audit = serviceEvent({ action: 'client.remove', by: 'reconciler', id: 'web' });
  for (const change of [{ name: 'Ana' }, { action: 'form.x' }, { outcome: 'maybe' }, { actor: { kind: 'robot' } }])
    expect(problemOfLine(JSON.stringify({ msg: 'x', audit: { ...audit, ...change } }))).toContain('invalid');
  expect(problemOfLine('{"audit":"not notified"}')).toContain('invalid');
});
