// Tests the token handler's configuration.
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ConfigError, parseConfig } from '../service/operations/config.ts';
import { configSchema } from './config.ts';

const key = randomBytes(32).toString('base64');
const complete = {
  ACCESS_SERVICE_URL: 'http://keycloak:8080/auth',
  DATABASE_URL: 'postgres://postgres/token_handler',
  DIRECTORY_URL: 'http://directory:8080/directory/v2',
  CLIENT_SECRET: 'a long secret',
  KEY_RING: `a:${key}`,
  REDIS_URL: 'redis://redis:6379',
};

const problemsOf = (env: Record<string, string>) => {
  try {
    parseConfig(configSchema, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

it('the configuration is complete with the variables that have no default', () => {
  expect(problemsOf(complete)).toEqual([]);
  const config = parseConfig(configSchema, complete);
  expect(config).toMatchObject({ ALLOW_INSECURE_REDIRECT_URIS: false, TENANT_HEADER: 'X-PLATFORM-TENANT' });
  expect(config.PUBLIC_URL).toBeUndefined();
  expect(config.BUILDER_APP_URL).toBeUndefined();
});

it('the configuration has the documented defaults for names, lifetimes and limits', () => {
  const minute = 60_000;
  expect(parseConfig(configSchema, complete)).toMatchObject({
    URN_PREFIX: 'urn:example',
    TENANT_HEADER: 'X-PLATFORM-TENANT',
    TRUSTED_PROXIES: ['loopback'],
    SESSION_STORE: 'redis',
    SESSION_COOKIE: 'formgate_session',
    SESSION_MAX_AGE: 12 * 60 * minute,
    SESSION_IDLE: 60 * minute,
    SIGN_IN_LIMIT: 100,
    SIGN_IN_WINDOW: 5 * minute,
    SESSION_REQUEST_LIMIT: 300,
    TENANT_REGISTRATION_LIMIT: 1_000,
    TENANT_SESSION_LIMIT: 100_000,
    TARGET_SESSION_LIMIT: 1_200,
    TARGET_ADDRESS_LIMIT: 6_000,
    TARGET_WINDOW: minute,
    TARGET_DROPPED_HEADERS: [],
    UPSTREAM_TIMEOUT: minute,
    UPSTREAM_CONNECTIONS: 256,
    UPSTREAM_PERSON_SHARE: 10,
    UPSTREAM_TENANT_SHARE: 50,
    BODY_MIN_RATE: 1_024,
    BODY_RATE_WINDOW: minute / 2,
  });
  expect(parseConfig(configSchema, complete).UPSTREAM_ALLOWED_DOMAINS).toBeUndefined();
});

it('an invalid configuration is reported with all its problems', () => {
  const problems = problemsOf({ KEY_RING: 'short', BUILDER_APP_URL: 'ftp://x', PUBLIC_URL: '/', PORT: 'x' });
  expect(problems.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'ACCESS_SERVICE_URL',
      'DATABASE_URL',
      'DIRECTORY_URL',
      'CLIENT_SECRET',
      'KEY_RING',
      'BUILDER_APP_URL',
      'PUBLIC_URL',
      'PORT',
    ]),
  );
});

it('SESSION_IDLE must not be longer than SESSION_MAX_AGE', () => {
  const problem = 'must not be longer than SESSION_MAX_AGE';
  expect(problemsOf({ ...complete, SESSION_IDLE: 'P1D' })).toEqual([{ name: 'SESSION_IDLE', problem }]);
});

describe('KEY_RING', () => {
  it('is required: there is no default key', () => {
    const { KEY_RING: _, ...without } = complete;
    expect(problemsOf(without)).toEqual([{ name: 'KEY_RING', problem: 'is required' }]);
  });

  it('is refused if a key is too short, without showing the key', () => {
    const short = randomBytes(16).toString('base64');
    const [problem] = problemsOf({ ...complete, KEY_RING: `a:${key},b:${short}` });
    expect(problem).toEqual({ name: 'KEY_RING', problem: 'key 2 of the ring has fewer than 32 bytes' });
  });
});

describe('BUILDER_APP_URL', () => {
  it('may end in a slash', () => {
    const { BUILDER_APP_URL } = parseConfig(configSchema, {
      ...complete,
      BUILDER_APP_URL: 'https://builder.example.org/',
    });
    expect(BUILDER_APP_URL).toBe('https://builder.example.org');
  });

  it.each([
    'ftp://builder.example.org',
    'builder.example.org',
    'javascript:alert(1)',
    'https://a:b@builder.example.org',
  ])('must be http or https, without credentials: %s', (url) => {
    expect(problemsOf({ ...complete, BUILDER_APP_URL: url }).map(({ name }) => name)).toEqual(['BUILDER_APP_URL']);
  });
});

describe('TARGET_DROPPED_HEADERS', () => {
  it('is a list of header names, which may end in an asterisk', () => {
    const config = parseConfig(configSchema, { ...complete, TARGET_DROPPED_HEADERS: 'X-Staff-Id, X-Internal-*,' });
    expect(config.TARGET_DROPPED_HEADERS).toEqual(['X-Staff-Id', 'X-Internal-*']);
  });

  it('is refused if it contains anything else', () => {
    for (const TARGET_DROPPED_HEADERS of ['*', 'X-*-Id', 'X Staff', 'X-A: b', 'X-A, é'])
      expect(problemsOf({ ...complete, TARGET_DROPPED_HEADERS })).toMatchObject([{ name: 'TARGET_DROPPED_HEADERS' }]);
  });
});
