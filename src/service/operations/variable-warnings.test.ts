import { expect, it } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { parseConfig } from './config.ts';
import { renamedSettings } from './renamed-settings.ts';
import { warnOfVariables } from './variable-warnings.ts';

const schema = z.object({
  SESSION_IDLE: z.string(),
  DATABASE_URL: z.string(),
  PORT: z.string(),
  SEED_FILE: z.string(),
});

function warningsOf(env: NodeJS.ProcessEnv, settings: z.ZodObject = schema) {
  const { log, lines } = captureLog();
  warnOfVariables(settings, env, log);
  return lines().map(({ level, variable, meant, use }) => ({ level, variable, meant, use }));
}

it.each([
  ['SESION_IDLE', 'SESSION_IDLE'],
  ['SESSION_IDEL', 'SESSION_IDLE'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['DATABSE_URL_FILE', 'DATABASE_URL'],
])('a warning names the misspelt variable %s and the setting that was meant, without its value', (variable, meant) => {
  expect(warningsOf({ [variable]: 'canary' })).toEqual([{ level: 'warn', variable, meant }]);
});

it('settings, their files and the variables of a cluster cause no warning', () => {
  const env = {
    SESSION_IDLE: 'PT1H',
    DATABASE_URL_FILE: '/x',
    SEED_FILE: '/y',
    PORTS: '1',
    HOSTNAME: 'pod',
    REDIS_SERVICE_HOST: '10.0.0.1',
    SESION_IDLE: '',
  };
  expect(warningsOf(env)).toEqual([]);
});

it.each(Object.entries(renamedSettings))('%s still sets %s, with one warning that names it', (oldName, name) => {
  const settings = z.object({ [name]: z.string() });
  expect(parseConfig(settings, { [oldName]: 'PT1M' })).toEqual({ [name]: 'PT1M' });
  expect(warningsOf({ [oldName]: 'PT1M' }, settings)).toEqual([{ level: 'warn', variable: oldName, use: name }]);
  expect(warningsOf({ [`${oldName}_FILE`]: '/x' }, settings)).toMatchObject([{ use: name }]);
  expect(() => parseConfig(settings, { [oldName]: 'PT1M', [name]: 'PT2M' })).toThrow(
    `${name}: is set more than once: ${name}, ${oldName}`,
  );
});
