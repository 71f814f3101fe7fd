import { expect, it } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { warnOfMisspelt } from './misspelt.ts';

const schema = z.object({ SESSION_IDLE: z.string(), DATABASE_URL: z.string(), PORT: z.string() });

function warningsOf(env: NodeJS.ProcessEnv) {
  const { log, lines } = captureLog();
  warnOfMisspelt(schema, env, log);
  return lines().map(({ level, variable, meant }) => ({ level, variable, meant }));
}

it.each([
  ['SESION_IDLE', 'SESSION_IDLE'],
  ['SESSION_IDEL', 'SESSION_IDLE'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['DATABSE_URL_FILE', 'DATABASE_URL'],
])('a misspelt setting is a warning that names it and what was meant, without its value: %s', (variable, meant) => {
  expect(warningsOf({ [variable]: 'canary' })).toEqual([{ level: 'warn', variable, meant }]);
});

it('settings, their files, and variables of the cluster are no warning', () => {
  const env = {
    SESSION_IDLE: 'PT1H',
    DATABASE_URL_FILE: '/x',
    PORTS: '1',
    HOSTNAME: 'pod',
    REDIS_SERVICE_HOST: '10.0.0.1',
  };
  expect(warningsOf(env)).toEqual([]);
});
