// Warns about environment variables that need an operator's attention: old names of renamed settings, and names that are
// probably misspelt. A process ignores other variables that it does not know, because clusters set many.
import type { z } from 'zod';
import type { Logger } from './log.ts';
import { oldNamesOf } from './renamed-settings.ts';

/** Shorter names may resemble each other by accident. */
const shortestName = 8;
const mostEdits = 2;

/** Logs a warning for each such variable, but never its value. */
export function warnOfVariables(schema: z.ZodObject, env: NodeJS.ProcessEnv, log: Logger): void {
  const settings = Object.keys(schema.shape);
  const newNames = new Map(settings.flatMap((name) => oldNamesOf(name).map((oldName) => [oldName, name])));
  for (const variable of Object.keys(env)) {
    const name = settings.includes(variable) ? variable : variable.replace(/_FILE$/, '');
    if (settings.includes(name) || !env[variable]) continue;
    const renamed = newNames.get(name);
    const meant = settings.find((candidate) => edits(name, candidate) <= mostEdits);
    if (renamed) log.warn({ variable, use: renamed }, 'the setting was renamed; the next version ignores its old name');
    else if (meant && name.length >= shortestName)
      log.warn({ variable, meant }, 'unknown variable ignored; it may be misspelt');
  }
}

/**
 * Returns the Levenshtein distance: the number of letters to insert, delete or replace. Returns infinity early if the
 * lengths differ by more than the limit.
 */
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
