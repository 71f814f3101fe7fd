// Checks lines that a process has written: log lines, samples of its metrics, exported spans. An audit event must match
// docs/audit-event.schema.json. No line may contain a token, a cookie, an email address, or a value that a test has
// marked as secret with the word "canary".
import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Ajv2020 } from 'ajv/dist/2020.js';

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

/** Collects the first few problems of many lines. */
export function createOutputCheck() {
  const problems: string[] = [];
  return {
    problems,
    add(line: string): void {
      if (problems.length >= mostProblems) return;
      const problem = problemOfLine(line);
      if (problem !== undefined) problems.push(`${problem}: ${line.slice(0, 2_000)}`);
    },
  };
}

const mostProblems = 5;

/** Returns the problems of the lines of a stream. */
export async function checkOutput(output: Readable): Promise<string[]> {
  const check = createOutputCheck();
  for await (const line of createInterface({ input: output })) check.add(line);
  return check.problems;
}

export const checkLogFile = (path: string): Promise<string[]> => checkOutput(createReadStream(path));
