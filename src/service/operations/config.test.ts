// Tests how a process reads its environment.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, csv, flag, httpUrl, integer, parseConfig, secret } from './config.ts';
import { isoDuration } from './duration.ts';
import { accessFields, databaseFields, processFields, processRules } from './process-fields.ts';
import { orderRule, withRules } from './settings-rules.ts';

const folder = mkdtempSync(join(tmpdir(), 'formgate-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function problemsOf(schema: z.ZodObject, env: NodeJS.ProcessEnv): Record<string, string> {
  try {
    parseConfig(schema, env);
  } catch (error) {
    if (error instanceof ConfigError)
      return Object.fromEntries(error.problems.map(({ name, problem }) => [name, problem]));
    throw error;
  }
  return {};
}

const everything = z.object({ ...processFields, ...accessFields, ...databaseFields, CLIENT_SECRET: secret(16) });
const needed = {
  ACCESS_SERVICE_URL: 'https://access.example.org/auth',
  DATABASE_URL: 'postgres://forms@localhost/forms',
  CLIENT_SECRET: 'a-secret-that-is-long-enough',
};

describe('the configuration', () => {
  it('is complete with the required variables', () => {
    expect(parseConfig(everything, needed)).toMatchObject({
      HOST: '0.0.0.0',
      PORT: 8080,
      METRICS_PORT: 9090,
      URN_PREFIX: 'urn:example',
      TENANT_HEADER: 'X-PLATFORM-TENANT',
      TRUSTED_PROXIES: ['loopback'],
      CORS_ORIGINS: ['*'],
      BODY_LIMIT: 1_048_576,
      DRAIN_DEADLINE: 25_000,
      DATABASE_POOL_SIZE: 10,
    });
  });

  it('reports all problems together, each with the name of its variable', () => {
    const problems = problemsOf(everything, {
      PORT: 'eighty',
      URN_PREFIX: 'example',
      TRUSTED_PROXIES: '10.0.0.0/33',
      DRAIN_DEADLINE: '25s',
      LOG_LEVEL: 'loud',
      ACCESS_SERVICE_URL: 'access.example.org',
      CLIENT_SECRET: 'short',
    });
    expect(Object.keys(problems).sort()).toEqual([
      'ACCESS_SERVICE_URL',
      'CLIENT_SECRET',
      'DATABASE_URL',
      'DRAIN_DEADLINE',
      'LOG_LEVEL',
      'PORT',
      'TRUSTED_PROXIES',
      'URN_PREFIX',
    ]);
    expect(problems).toMatchObject({ DATABASE_URL: 'is required', PORT: 'must be a whole number from 0 to 65535' });
  });

  it('shows no value in its message', () => {
    const env = {
      PORT: 'canary-port',
      DATABASE_URL: 'mysql://canary-user:canary-password@host/',
      ACCESS_SERVICE_URL: 'https://canary-user:canary-password@host/',
      CLIENT_SECRET: 'canary',
      LOG_LEVEL: 'canary-level',
      URN_PREFIX: 'canary-prefix',
      DRAIN_DEADLINE: 'canary-deadline',
      TRUSTED_PROXIES: 'canary-proxy',
      TENANT_HEADER: 'canary header',
      BODY_LIMIT: 'canary-limit',
    };
    expect(() => parseConfig(everything, env)).toThrow(ConfigError);
    try {
      parseConfig(everything, env);
    } catch (error) {
      expect((error as ConfigError).problems).toHaveLength(10);
      expect((error as ConfigError).message).not.toContain('canary');
    }
  });

  it('reads the value of NAME from the file that NAME_FILE names, without its last line break', () => {
    const env = { ...needed, CLIENT_SECRET: undefined, CLIENT_SECRET_FILE: file('secret', 'mounted-by-kubernetes\n') };
    expect(parseConfig(everything, env).CLIENT_SECRET).toBe('mounted-by-kubernetes');
  });

  it('rejects a variable that is also given by file', () => {
    const env = { ...needed, CLIENT_SECRET_FILE: file('other', 'another-long-secret-value') };
    expect(problemsOf(everything, env)).toEqual({
      CLIENT_SECRET: 'is set more than once: CLIENT_SECRET, CLIENT_SECRET_FILE',
    });
  });

  it('rejects a file that is missing or empty, and names its variable', () => {
    const missing = { ...needed, CLIENT_SECRET: undefined, CLIENT_SECRET_FILE: join(folder, 'nowhere') };
    expect(problemsOf(everything, missing)).toEqual({ CLIENT_SECRET: 'CLIENT_SECRET_FILE cannot be read (ENOENT)' });
    const empty = { ...needed, CLIENT_SECRET: undefined, CLIENT_SECRET_FILE: file('empty', '\n') };
    expect(problemsOf(everything, empty)).toEqual({ CLIENT_SECRET: 'CLIENT_SECRET_FILE names an empty file' });
  });

  it('treats an empty variable as not set', () => {
    expect(problemsOf(everything, { ...needed, CLIENT_SECRET: '' })).toEqual({ CLIENT_SECRET: 'is required' });
    expect(parseConfig(everything, { ...needed, PORT: '', CLIENT_SECRET_FILE: '' }).PORT).toBe(8080);
  });

  it('ignores variables that the schema does not name', () => {
    expect(parseConfig(z.object({ A: z.string() }), { A: 'a', PATH: '/bin', B_FILE: '/nowhere' })).toEqual({ A: 'a' });
  });
});

describe('settings that contradict each other', () => {
  const ruled = withRules(everything, ...processRules);

  it.each([
    [{ DRAIN_DELAY: 'PT30S' }, { DRAIN_DELAY: 'must be shorter than DRAIN_DEADLINE' }],
    [{ PORT: '9090' }, { METRICS_PORT: 'must differ from PORT' }],
    [{ CORS_ORIGINS: '*, https://forms.example.org' }, { CORS_ORIGINS: 'must not list origins beside *' }],
    [{ CORS_ORIGINS: 'https://forms.example.org/' }, { CORS_ORIGINS: expect.stringContaining('such as https://') }],
  ])('are rejected: %j', (settings, problems) => {
    expect(problemsOf(ruled, { ...needed, ...settings })).toEqual(problems);
  });

  it('are reported together with other problems if each of them is valid by itself', () => {
    const env = { DRAIN_DELAY: 'PT30S', PORT: '9090', METRICS_PORT: 'x', DATABASE_URL: needed.DATABASE_URL };
    expect(problemsOf(ruled, env)).toEqual({
      DRAIN_DELAY: 'must be shorter than DRAIN_DEADLINE',
      METRICS_PORT: 'must be a whole number from 0 to 65535',
      ACCESS_SERVICE_URL: 'is required',
      CLIENT_SECRET: 'is required',
    });
  });

  it('do not include free ports, equal durations where allowed, and several origins', () => {
    const settings = {
      PORT: '0',
      METRICS_PORT: '0',
      DRAIN_DELAY: 'PT24S',
      CORS_ORIGINS: 'http://a.example:8080, https://b.example',
    };
    expect(problemsOf(ruled, { ...needed, ...settings })).toEqual({});
    const sessions = withRules(
      z.object({ IDLE: isoDuration('PT1H'), MAX: isoDuration('PT1H') }),
      orderRule('IDLE', 'MAX', { mayEqual: true }),
    );
    expect(problemsOf(sessions, {})).toEqual({});
    expect(problemsOf(sessions, { MAX: 'PT59M' })).toEqual({ IDLE: 'must not be longer than MAX' });
  });
});

describe('CORS_ORIGINS', () => {
  const parse = (CORS_ORIGINS: string) => parseConfig(z.object(processFields), { CORS_ORIGINS }).CORS_ORIGINS;

  it('allows no origin with the word none, and every origin if it is empty', () => {
    expect(parse('none')).toEqual([]);
    expect(parse('')).toEqual(['*']);
  });

  it('does not accept none beside an origin', () => {
    expect(() => parse('none,https://forms.example.org')).toThrow('must be *, none or a list of origins');
  });
});

describe('a field', () => {
  it('that is a list drops white space and empty items', () => {
    expect(parseConfig(z.object({ A: csv('x, y') }), {}).A).toEqual(['x', 'y']);
    expect(parseConfig(z.object({ A: csv() }), { A: ' a ,, b,' }).A).toEqual(['a', 'b']);
    expect(parseConfig(z.object({ A: csv() }), {}).A).toEqual([]);
  });

  it('that is a URL is http or https, without credentials, query and fragment, and loses its trailing slash', () => {
    const schema = z.object({ A: httpUrl() });
    expect(parseConfig(schema, { A: 'https://host:8443/auth//' }).A).toBe('https://host:8443/auth');
    for (const text of ['ftp://host', 'host', '//host', 'javascript:1', ' http://host', 'http://ho st'])
      expect(problemsOf(schema, { A: text }).A).toBe('must be an http or https URL');
    for (const text of [
      'http://u@host',
      'http://u:p@host',
      'http://host?a=b',
      'http://host#a',
      'http://host?',
      'http://host#',
    ])
      expect(problemsOf(schema, { A: text }).A).toBe('must be a URL without credentials, query and fragment');
  });

  it('that is a number is whole, in decimal digits and in its range', () => {
    const schema = z.object({ A: integer(5, { min: 1, max: 20 }) });
    expect(parseConfig(schema, {}).A).toBe(5);
    expect(parseConfig(schema, { A: '20' }).A).toBe(20);
    for (const text of ['0', '21', '-1', '1.5', '1e1', '0x10', ' 7', 'Infinity', '99999999999999999'])
      expect(problemsOf(schema, { A: text }).A).toBe('must be a whole number from 1 to 20');
  });

  it('that is a flag is true or false', () => {
    const schema = z.object({ A: flag(false) });
    expect([parseConfig(schema, {}).A, parseConfig(schema, { A: 'true' }).A]).toEqual([false, true]);
    expect(problemsOf(schema, { A: 'yes' }).A).toContain('"true"|"false"');
  });
});
