// Checks what the suite's processes tell operators: every line that a captured log gets, every sample that `samplesOf` reads
// from their metrics, and every span that a test's collector receives. Audit events have the form of
// docs/audit-event.schema.json, and nothing holds a token, a cookie, an email address or a value that a test has marked as
// secret with the word "canary".
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect } from 'vitest';
import { onLogLine } from './captured-log.ts';

const schema = readFileSync(join(import.meta.dirname, '../../docs/audit-event.schema.json'), 'utf8');
const isAuditEvent = new Ajv2020().compile(JSON.parse(schema));

const secrets: Record<string, RegExp> = {
  'a token': /\beyJ[\w-]{8,}\.[\w-]{8,}/,
  'a bearer': /\bbearer [\w.~+/-]{8,}/i,
  'a cookie': /(?:formgate_session|XSRF-TOKEN)=[\w.%-]/,
  'an email address': /[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/i,
  'a canary': /canar(?:y|ia)(?! of the inside)/i,
};

/** Returns what is wrong with a line; undefined if nothing is. */
export function problemOfLine(line: string): string | undefined {
  const secret = Object.keys(secrets).find((name) => secrets[name]?.test(line));
  if (secret !== undefined) return `holds ${secret}`;
  if (!line.includes('"audit":')) return undefined;
  const { audit } = JSON.parse(line) as { audit: unknown };
  return isAuditEvent(audit) ? undefined : `has an invalid audit event: ${JSON.stringify(isAuditEvent.errors)}`;
}

/** At most this many lines are reported. */
const most = 5;
let problems: string[] = [];

onLogLine((line) => {
  if (problems.length >= most) return;
  const problem = problemOfLine(line);
  if (problem !== undefined) problems.push(`${problem}: ${line.slice(0, 2_000)}`);
});

beforeAll(() => {
  problems = [];
});

afterAll(() => {
  expect(problems, 'log lines, metrics and spans of this file').toEqual([]);
});
