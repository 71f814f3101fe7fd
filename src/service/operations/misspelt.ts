// Warns about environment variables that are probably misspelt settings. A process ignores variables that it does not
// know, because clusters set many; one that is nearly a setting's name was hardly meant to be ignored.
import type { z } from 'zod';
import type { Logger } from './log.ts';

/** Shorter names resemble each other by accident. */
const shortestName = 8;
const mostEdits = 2;

/** Logs one line for each suspect. It never logs a value. */
export function warnOfMisspelt(schema: z.ZodObject, env: NodeJS.ProcessEnv, log: Logger): void {
  const known = Object.keys(schema.shape);
  const valid = new Set(known.flatMap((name) => [name, `${name}_FILE`]));
  for (const name of Object.keys(env)) {
    if (valid.has(name) || name.length < shortestName) continue;
    const meant = known.find((candidate) => edits(name.replace(/_FILE$/, ''), candidate) <= mostEdits);
    if (meant !== undefined) log.warn({ variable: name, meant }, 'unknown variable ignored; it may be misspelt');
  }
}

/** Levenshtein distance: letters to insert, delete or replace. Capped soon where the lengths alone differ by more. */
function edits(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > mostEdits) return Number.POSITIVE_INFINITY;
  let previous = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...one].entries()) {
    const current = [row + 1];
    for (const [column, candidate] of [...other].entries()) {
      const replaced = (previous[column] ?? 0) + Number(letter !== candidate);
      current.push(Math.min(replaced, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[other.length] ?? 0;
}
