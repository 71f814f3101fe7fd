// Tests the form service's configuration: its defaults, and the error that lists all invalid settings.
import { describe, expect, it } from 'vitest';
import { ConfigError, parseConfig } from '../service/operations/config.ts';
import { configSchema } from './config.ts';

const env = {
  DATABASE_URL: 'postgres://forms@localhost/forms',
  DIRECTORY_URL: 'http://platform:8080/directory/v2',
  ACCESS_SERVICE_URL: 'http://keycloak:8080/auth',
  CLIENT_SECRET: 'a client secret',
  CODE_KEY: 'x'.repeat(32),
};

describe('the configuration', () => {
  it('has defaults for everything except addresses and secrets', () => {
    expect(parseConfig(configSchema, env)).toMatchObject({
      CODE_LIFETIME: 600_000,
      CODE_CHANNELS: ['email', 'sms'],
      SUBSCRIBER_REMOVAL_DELAY: 900_000,
      TENANT_STORAGE_LIMIT: 34_359_738_368,
      DELETE_FILES: false,
      ANONYMOUS_READ_LIMIT: 300,
      ANONYMOUS_READ_WINDOW: 60_000,
      BODY_LIMIT: 1_048_576,
      URN_PREFIX: 'urn:example',
    });
  });

  it('reports all problems together, and never a secret', () => {
    let error: unknown;
    try {
      parseConfig(configSchema, {
        ...env,
        CODE_KEY: 'too-short-canary',
        CODE_LIFETIME: 'ten minutes',
        CODE_CHANNELS: 'email, pigeon',
        ANONYMOUS_READ_LIMIT: '0',
        ANONYMOUS_READ_WINDOW: 'PT2H',
        DATABASE_URL: '',
      });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ConfigError);
    const { problems, message } = error as ConfigError;
    expect(problems.map(({ name }) => name).sort()).toEqual([
      'ANONYMOUS_READ_LIMIT',
      'ANONYMOUS_READ_WINDOW',
      'CODE_CHANNELS',
      'CODE_KEY',
      'CODE_LIFETIME',
      'DATABASE_URL',
    ]);
    expect(message).not.toContain('too-short-canary');
  });
});
