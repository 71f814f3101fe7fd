// Parses the arguments of the command `config`.

import { parseCommandLine, UsageError } from '../../service/operations/command-line.ts';
import { parseDuration } from '../../service/operations/duration.ts';

export const processNames = ['forms', 'token-handler', 'platform-server', 'reconciler'] as const;
export type ProcessName = (typeof processNames)[number];

export const dependencies = ['postgres', 'redis', 'identity-provider', 'directory', 'mail'] as const;
export type Dependency = (typeof dependencies)[number];

export interface CheckCommand {
  processes: ProcessName[];
  skipped: Dependency[];
  /** Milliseconds within which each dependency must respond. */
  timeLimit: number;
  json: boolean;
}

/** Milliseconds. Timers of Node hold at most 24.8 days; a longer timer fires at once. */
const longestTimeLimit = 3_600_000;

export const help = `Checks the configuration as a start would, and reports all problems together. Changes nothing, and listens nowhere.
The environment is that of the process. It also asks the dependencies: whether the database can be reached, belongs to
the process and has a schema that this release can use, and whether Redis, the identity provider, the directory and the
mail server accept the settings.

Usage: npm run config -- --check [--process NAME]… [--skip DEPENDENCY]… [--time-limit DURATION] [--json]

  --process NAME         ${processNames.join(', ')}; may be repeated. By default
                         all, although each of them usually has its own environment and database
  --skip DEPENDENCY      do not ask postgres, redis, identity-provider, directory or mail; \`all\` checks the settings only
  --time-limit DURATION  how long each dependency may take to respond, such as PT30S; by default PT10S, at most PT1H
  --json                 print one JSON object
  --help                 print this

Exit codes: 0 no problem, though there may be warnings; 1 a setting is wrong; 2 invalid arguments; 3 the settings are valid as
far as they could be checked, but a dependency could not be reached. No output contains the value of a setting.`;

/** Returns undefined if help is requested. Throws UsageError if the arguments are invalid. */
export function parseCheckArguments(args: string[]): CheckCommand | undefined {
  const { check, help, process = [...processNames], skip = [], json = false, ...values } = parse(args);
  if (help || args.length === 0) return undefined;
  if (!check) throw new UsageError('expected: --check. See --help.');
  const timeLimit = parseDuration(values['time-limit'] ?? 'PT10S');
  if (!timeLimit || timeLimit > longestTimeLimit)
    throw new UsageError('--time-limit must be a duration such as PT30S, at most PT1H. See --help.');
  return {
    processes: process.map((name) => oneOf(processNames, name, '--process')),
    skipped: skip.includes('all') ? [...dependencies] : skip.map((name) => oneOf(dependencies, name, '--skip')),
    timeLimit,
    json,
  };
}

function oneOf<T extends string>(allowed: readonly T[], given: string, option: string): T {
  const found = allowed.find((name) => name === given);
  if (found === undefined) throw new UsageError(`${option} must be one of ${allowed.join(', ')}. See --help.`);
  return found;
}

function parse(args: string[]) {
  const options = {
    check: { type: 'boolean' },
    process: { type: 'string', multiple: true },
    skip: { type: 'string', multiple: true },
    'time-limit': { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  } as const;
  return parseCommandLine({ args, options }).values;
}
