// Warns about environment variables that need an operator's attention: old names of renamed settings, and names that
// are probably misspelled. A process ignores other variables that it does not know, because clusters set many.
import type { ProcessSettings } from './config.ts';
import type { Logger } from './log.ts';
import { oldNamesOf } from './renamed-settings.ts';

/** Either a variable that the process ignores, or the old name of a setting, which the process still accepts. */
export type DoubtfulVariable = { variable: string; meant: string } | { variable: string; use: string };

/** Minimum length of names that are compared. Shorter names may resemble each other by accident. */
const shortestName = 8;
const mostEdits = 2;
const shortestWord = 3;

/** Names of the variables that Kubernetes sets for each Service of the namespace. */
const ofKubernetes = /_SERVICE_(?:HOST|PORT(?:_.*)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/;

/** Logs a warning for each doubtful variable, but never its value. */
export function warnOfVariables(settings: ProcessSettings, env: NodeJS.ProcessEnv, log: Logger): void {
  for (const found of doubtfulVariables([settings], env)) {
    if ('use' in found) log.warn(found, 'the setting was renamed; the next version ignores its old name');
    else log.warn(found, 'unknown variable ignored; it may be misspelt');
  }
}

/** Returns the doubtful variables of the environment that `processes` share. */
export function doubtfulVariables(processes: readonly ProcessSettings[], env: NodeJS.ProcessEnv): DoubtfulVariable[] {
  const settings = processes.flatMap(({ schema }) => Object.keys(schema.shape));
  const others = processes.flatMap(({ variables = [] }) => variables);
  const known = new Set([...settings, ...others]);
  const newNames = new Map(settings.flatMap((name) => oldNamesOf(name).map((oldName) => [oldName, name])));
  return Object.keys(env).flatMap((variable): DoubtfulVariable[] => {
    const name = known.has(variable) ? variable : variable.replace(/_FILE$/, '');
    if (known.has(name) || !env[variable] || ofKubernetes.test(variable)) return [];
    const renamed = newNames.get(name);
    if (renamed !== undefined) return [{ variable, use: renamed }];
    const meant = name.startsWith('DIR_') ? nearestService(name, others) : nearest(name, settings);
    return meant === undefined ? [] : [{ variable, meant }];
  });
}

/**
 * Returns the most similar variable of a platform service. Returns undefined for a `DIR_…` name that resembles none of
 * them, because it may be the name of a tenant's service. Also returns undefined for an unknown API of a platform
 * service, because Formgate may simply not call that API.
 */
function nearestService(name: string, variables: readonly string[]): string | undefined {
  const [service = '', api = ''] = name.split(/(_V\d+)$/);
  return variables.includes(service) ? undefined : nearest(service, variables, api);
}

function nearest(name: string, candidates: readonly string[], suffix = ''): string | undefined {
  if (name.length < shortestName) return undefined;
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(name, candidate) }))
    .filter(({ distance }) => distance <= mostEdits)
    .sort((one, other) => one.distance - other.distance || one.candidate.length - other.candidate.length);
  const [first] = ranked;
  return first && (candidates.includes(first.candidate + suffix) ? first.candidate + suffix : first.candidate);
}

/** Returns the number of edits between two names. An abbreviation counts as at most `mostEdits` edits. */
function distanceOf(name: string, candidate: string): number {
  const distance = edits(name, candidate);
  return distance > mostEdits && abbreviates(name, candidate) ? mostEdits : distance;
}

/**
 * True for an abbreviation, such as DATABASE_POOL of DATABASE_POOL_SIZE, or DIR_PLATFORM_CONFIG of
 * DIR_PLATFORM_CONFIGURATION_SERVICE.
 */
function abbreviates(name: string, candidate: string): boolean {
  const [first, ...words] = name.split('_');
  const [expected, ...rest] = candidate.split('_');
  if (first !== expected || words.length === 0) return false;
  return words.every((word) => {
    const at = rest.findIndex((other) => other === word || isShortened(word, other));
    rest.splice(0, at + 1);
    return at >= 0;
  });
}

function isShortened(one: string, other: string): boolean {
  const [short = '', long = ''] = [one, other].sort((a, b) => a.length - b.length);
  return short.length >= shortestWord && long.startsWith(short);
}

/**
 * Returns the Damerau–Levenshtein distance in its restricted form: the number of letters to insert, delete or replace,
 * and of neighbouring letters to swap. Returns infinity early if the lengths differ by more than `mostEdits`.
 */
function edits(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > mostEdits) return Number.POSITIVE_INFINITY;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 0; row < one.length; row += 1) {
    const current = [row + 1];
    for (let column = 0; column < other.length; column += 1) {
      const replaced = (previous[column] ?? 0) + Number(one[row] !== other[column]);
      const isSwapped = row > 0 && column > 0 && one[row] === other[column - 1] && one[row - 1] === other[column];
      const swapped = isSwapped ? (beforePrevious[column - 1] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[other.length] ?? 0;
}
