// Reads a process's configuration from its environment and reports all problems together. An unreadable secret file or an
// invalid value stops the process before it listens.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { oldNamesOf } from './renamed-settings.ts';

export interface ConfigProblem {
  name: string;
  problem: string;
}

/** Lists every problem of a configuration. It never holds a value. */
export class ConfigError extends Error {
  readonly problems: ConfigProblem[];

  constructor(problems: ConfigProblem[]) {
    super(['invalid configuration:', ...problems.map(({ name, problem }) => `${name}: ${problem}`)].join('\n  '));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/**
 * Parses the environment with a schema whose keys are variable names. `NAME_FILE` may name a file that contains the value
 * of `NAME`, such as a mounted secret. An empty variable counts as not set. Throws ConfigError.
 */
export function parseConfig<S extends z.ZodObject>(schema: S, env: NodeJS.ProcessEnv = process.env): z.infer<S> {
  const problems: ConfigProblem[] = [];
  const values: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = readVariable(name, env, problems);
    if (value !== undefined) values[name] = value;
  }
  const parsed = schema.safeParse(values);
  const unread = new Set(problems.map(({ name }) => name));
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0] ?? 'configuration');
    if (!unread.has(name)) problems.push({ name, problem: describeIssue(issue, values[name] === undefined) });
  }
  if (parsed.success && problems.length === 0) return parsed.data;
  throw new ConfigError(problems);
}

/** A rule between settings. A violation is reported under the first name. */
export interface SettingsRule {
  names: [string, ...string[]];
  holds(values: never): boolean;
  problem: string;
}

/** Adds rules to a schema. A rule is checked if its settings are valid by themselves, even if others are invalid. */
export function withRules<S extends z.ZodObject>(schema: S, ...rules: SettingsRule[]): S {
  return rules.reduce((ruled, { names, holds, problem }) => {
    const concerned = new Set<PropertyKey>(names);
    return ruled.refine((values) => holds(values as never), {
      path: [names[0]],
      error: problem,
      when: ({ issues }) => !issues.some(({ path }) => concerned.has(path?.[0] ?? '')),
    });
  }, schema);
}

/** Requires that the duration `shorter` is shorter than `longer`, or at most equal with `mayEqual`. */
export function orderRule(shorter: string, longer: string, { mayEqual = false } = {}): SettingsRule {
  return {
    names: [shorter, longer],
    holds: (values: Record<string, number>) => {
      const [below = 0, above = 0] = [values[shorter], values[longer]];
      return mayEqual ? below <= above : below < above;
    },
    problem: mayEqual ? `must not be longer than ${longer}` : `must be shorter than ${longer}`,
  };
}

function readVariable(name: string, env: NodeJS.ProcessEnv, problems: ConfigProblem[]): string | undefined {
  const values = [name, ...oldNamesOf(name)].filter((one) => env[one]);
  const files = [name, ...oldNamesOf(name)].map((one) => `${one}_FILE`).filter((one) => env[one]);
  const [variable, ...others] = [...values, ...files];
  if (variable === undefined) return undefined;
  const given = env[variable] ?? '';
  try {
    if (others.length > 0) throw new Error(`is set more than once: ${[variable, ...others].join(', ')}`);
    return values.length > 0 ? given : readSecretFile(variable, given);
  } catch (error) {
    problems.push({ name, problem: (error as Error).message });
    return undefined;
  }
}

function readSecretFile(variable: string, path: string): string {
  let content: string;
  try {
    content = readFileSync(path, 'utf8').trimEnd();
  } catch (error) {
    throw new Error(`${variable} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  if (content === '') throw new Error(`${variable} names an empty file`);
  return content;
}

function describeIssue(issue: z.core.$ZodIssue, absent: boolean): string {
  return absent && issue.code === 'invalid_type' ? 'is required' : issue.message;
}

/** Parses an http(s) URL without credentials, query, fragment or trailing slash. */
export function httpUrl() {
  return z.string().transform((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !['http:', 'https:'].includes(url.protocol) || /\s/.test(text))
      context.addIssue('must be an http or https URL');
    else if (url.username || url.password || url.search || url.hash)
      context.addIssue('must be a URL without credentials, query and fragment');
    return text.replace(/\/+$/, '');
  });
}

/** Parses a comma-separated list. White space around items is dropped. */
export function csv(defaultValue = '') {
  return z
    .string()
    .default(defaultValue)
    .transform((text) =>
      text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    );
}

/** Parses a secret with a minimum length. The error message never shows the secret. */
export function secret(minLength: number) {
  return z.string().min(minLength, `must have at least ${minLength} characters`);
}

/** Parses `true` or `false`. */
export function flag(defaultValue: boolean) {
  return z
    .enum(['true', 'false'])
    .default(defaultValue ? 'true' : 'false')
    .transform((text) => text === 'true');
}

/** Parses a whole number in decimal digits. */
export function integer(defaultValue: number, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}) {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return z
    .string()
    .default(String(defaultValue))
    .transform((text, context) => {
      const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      if (!(number >= min && number <= max)) context.addIssue(`must be a whole number ${range}`);
      return number;
    });
}

const durationPattern = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const durationUnits = [604_800_000, 86_400_000, 3_600_000, 60_000, 1_000];

/** A century: longer durations may exceed the range of dates. */
const longestDuration = 36_525 * 86_400_000;

/**
 * Returns the milliseconds of an ISO 8601 duration in weeks, days, hours, minutes and seconds. Returns undefined if it
 * is invalid or exceeds a century. Years and months are invalid, because their length depends on the calendar.
 */
export function parseDuration(text: string): number | undefined {
  const match = durationPattern.exec(text);
  if (!match || text.endsWith('T') || match.slice(1).every((part) => part === undefined)) return undefined;
  const milliseconds = durationUnits.reduce((sum, unit, index) => sum + Number(match[index + 1] ?? 0) * unit, 0);
  return milliseconds <= longestDuration ? Math.round(milliseconds) : undefined;
}

/** Parses an ISO 8601 duration such as P15D or PT10M into milliseconds. `max` is also a duration. */
export function isoDuration(defaultValue: string, { max }: { max?: string } = {}) {
  const most = max === undefined ? longestDuration : (parseDuration(max) ?? 0);
  return z
    .string()
    .default(defaultValue)
    .transform((text, context) => {
      const milliseconds = parseDuration(text);
      if (milliseconds === undefined) context.addIssue('must be an ISO 8601 duration such as P15D or PT10M');
      else if (milliseconds > most) context.addIssue(`must be at most ${max}`);
      return milliseconds ?? 0;
    });
}
