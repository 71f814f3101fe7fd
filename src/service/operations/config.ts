// Reads a process's configuration from its environment and reports all problems together. An unreadable secret file or
// an invalid value stops the process before it listens.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { hasQueryOrFragment, withoutTrailingSlashes } from '../url-text.ts';
import { oldNamesOf } from './renamed-settings.ts';
import type { SettingsRule } from './settings-rules.ts';

export interface ConfigProblem {
  name: string;
  problem: string;
}

/** Thrown with every problem of a configuration. The message never contains the value of a setting. */
export class ConfigError extends Error {
  readonly problems: ConfigProblem[];

  constructor(problems: ConfigProblem[]) {
    super(['invalid configuration:', ...problems.map(({ name, problem }) => `${name}: ${problem}`)].join('\n  '));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** A check of the configuration beyond its schema, such as a check of a file that a setting names. */
export interface ConfigCheck {
  /** Settings that the check reads. The check runs only if all of them are valid. */
  names: string[];
  /** Throws ConfigError if the check finds a problem. */
  run(values: never, env: NodeJS.ProcessEnv): unknown;
}

/** Everything that decides whether the environment of a process is valid. */
export interface ProcessSettings<S extends z.ZodObject = z.ZodObject> {
  /** Schema whose keys are variable names. It enforces `rules`. */
  schema: S;
  /** The rules that involve several settings. Documentation and tests read them here. */
  rules?: readonly SettingsRule[];
  checks?: readonly ConfigCheck[];
  /** Names of further variables that the process reads, but that are not in the schema. */
  variables?: readonly string[];
}

/** Parses the environment of a process, and runs its checks. Throws one ConfigError with all problems. */
export function parseSettings<S extends z.ZodObject>(
  settings: ProcessSettings<S>,
  env: NodeJS.ProcessEnv = process.env,
): z.infer<S> {
  const { values, problems } = inspectSettings(settings, env);
  if (problems.length > 0) throw new ConfigError(problems);
  return values as z.infer<S>;
}

export interface InspectedSettings {
  /** The values of all settings that are not in `invalid`. */
  values: Record<string, unknown>;
  /** Names of settings whose own value is invalid. */
  invalid: Set<string>;
  problems: ConfigProblem[];
}

/** Returns all problems, and the values of the settings whose own value is valid. */
export function inspectSettings({ schema, checks = [] }: ProcessSettings, env: NodeJS.ProcessEnv): InspectedSettings {
  const problems: ConfigProblem[] = [];
  const config = collect(problems, () => parseConfig(schema, env));
  const { values, invalid } = config ? { values: config, invalid: new Set<string>() } : parseEach(schema, env);
  for (const { names, run } of checks)
    if (!names.some((name) => invalid.has(name))) collect(problems, () => run(values as never, env));
  return { values, invalid, problems };
}

/** Parses each setting separately, so that one invalid setting does not hide the values of the others. */
function parseEach({ shape }: z.ZodObject, env: NodeJS.ProcessEnv): Omit<InspectedSettings, 'problems'> {
  const unread: ConfigProblem[] = [];
  const given = readVariables(Object.keys(shape), env, unread);
  const invalid = new Set(unread.map(({ name }) => name));
  const values: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape)) {
    const parsed = (field as z.ZodType).safeParse(given[name]);
    if (!parsed.success) invalid.add(name);
    else if (!invalid.has(name)) values[name] = parsed.data;
  }
  return { values, invalid };
}

/**
 * Returns the result of `work`. If `work` throws a ConfigError, adds its problems to the list and returns undefined.
 */
function collect<T>(problems: ConfigProblem[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

/**
 * Parses the environment with a schema whose keys are variable names. `NAME_FILE` may name a file that contains the
 * value of `NAME`, such as a mounted secret. An empty variable counts as unset. Throws ConfigError.
 */
export function parseConfig<S extends z.ZodObject>(schema: S, env: NodeJS.ProcessEnv = process.env): z.infer<S> {
  const problems: ConfigProblem[] = [];
  const values = readVariables(Object.keys(schema.shape), env, problems);
  const parsed = schema.safeParse(values);
  const unread = new Set(problems.map(({ name }) => name));
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0] ?? 'configuration');
    if (!unread.has(name)) problems.push({ name, problem: describeIssue(issue, values[name] === undefined) });
  }
  if (parsed.success && problems.length === 0) return parsed.data;
  throw new ConfigError(problems);
}

function readVariables(names: string[], env: NodeJS.ProcessEnv, problems: ConfigProblem[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of names) {
    const value = readVariable(name, env, problems);
    if (value !== undefined) values[name] = value;
  }
  return values;
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

/** Parses an http or https URL without credentials, query and fragment. Removes trailing slashes. */
export function httpUrl() {
  return z.string().transform((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !['http:', 'https:'].includes(url.protocol) || /\s/.test(text))
      context.addIssue('must be an http or https URL');
    else if (url.username || url.password || hasQueryOrFragment(text))
      context.addIssue('must be a URL without credentials, query and fragment');
    return withoutTrailingSlashes(text);
  });
}

/** False for a URL that a client library cannot split or decode. */
export function isReadableUrl(text: string): boolean {
  try {
    const { username, password, pathname } = new URL(text);
    return [username, password, pathname].every((part) => typeof decodeURIComponent(part) === 'string');
  } catch {
    return false;
  }
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
