import { expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, parseConfig } from '../service/operations/config.ts';
import { platformFields } from './platform-fields.ts';

const parse = (timeout: string) =>
  parseConfig(z.object(platformFields), {
    ...{ DIRECTORY_URL: 'http://directory', CLIENT_SECRET: 'long enough' },
    PLATFORM_TIMEOUT: timeout,
  }).PLATFORM_TIMEOUT;

it('a timeout of calls that is too long for a timer, so that every call would fail, is a configuration error', () => {
  expect(parse('PT1H')).toBe(3_600_000);
  for (const timeout of ['PT1H1S', 'P30D', 'P100D']) expect(() => parse(timeout)).toThrow(ConfigError);
});
