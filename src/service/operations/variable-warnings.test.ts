import { expect, it, onTestFinished } from 'vitest';
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
  CODE_LIFETIME: z.string(),
  DATABASE_POOL_SIZE: z.string(),
});

const variables = ['DIR_PLATFORM_CONFIGURATION_SERVICE', 'DIR_PLATFORM_CONFIGURATION_SERVICE_V2'];

function warningsOf(env: NodeJS.ProcessEnv, settings: z.ZodObject = schema) {
  const { log, lines } = captureLog();
  warnOfVariables({ schema: settings, variables }, env, log);
  return lines().map(({ level, variable, meant, use }) => ({ level, variable, meant, use }));
}

it.each([
  ['SESION_IDLE', 'SESSION_IDLE'],
  ['SESSION_IDEL', 'SESSION_IDLE'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['DATABSE_URL_FILE', 'DATABASE_URL'],
  ['CODE_LIFTIME', 'CODE_LIFETIME'],
  // Two swaps of neighbouring letters. The ordinary Levenshtein distance, which has no swaps, would be 4.
  ['COED_LIFETMIE', 'CODE_LIFETIME'],
  ['DATABASE_POOL', 'DATABASE_POOL_SIZE'],
  ['DIR_PLATFORM_CONFIG_SERVICE_V2', 'DIR_PLATFORM_CONFIGURATION_SERVICE_V2'],
  ['DIR_PLATFORM_CONFIGURATION', 'DIR_PLATFORM_CONFIGURATION_SERVICE'],
  ['DIR_PLATFORM_CONFIGURATON_SERVICE', 'DIR_PLATFORM_CONFIGURATION_SERVICE'],
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
    DATABASE_ADDRESS_URLS: 'x',
    REDIS_SERVICE_HOST: '10.0.0.1',
    FORMGATE_FORMS_SERVICE_HOST: '10.0.0.1',
    // Variables that Kubernetes sets for Services with the names database-url and session-idle
    DATABASE_URL_SERVICE_HOST: '10.0.0.1',
    DATABASE_URL_SERVICE_PORT_HTTP: '80',
    SESSION_IDLE_PORT_80_TCP_ADDR: '10.0.0.1',
    DIR_PLATFORM_CONFIGURATION_SERVICE_V3: 'http://configuration/v3',
    DIR_PLATFORM_PAYMENT_SERVICE: 'http://payment',
    DIR_TOWN_CONFIGURATION_SERVICE: 'http://town',
    SESION_IDLE: '',
  };
  expect(warningsOf(env)).toEqual([]);
});

it('the old name of a renamed setting still sets it, with one warning that names the setting', () => {
  renamedSettings.OLD_IDLE = 'IDLE';
  onTestFinished(() => void delete renamedSettings.OLD_IDLE);
  const settings = z.object({ IDLE: z.string() });
  expect(parseConfig(settings, { OLD_IDLE: 'PT1M' })).toEqual({ IDLE: 'PT1M' });
  expect(warningsOf({ OLD_IDLE: 'PT1M' }, settings)).toEqual([{ level: 'warn', variable: 'OLD_IDLE', use: 'IDLE' }]);
  expect(warningsOf({ OLD_IDLE_FILE: '/x' }, settings)).toMatchObject([{ use: 'IDLE' }]);
  expect(() => parseConfig(settings, { OLD_IDLE: 'PT1M', IDLE: 'PT2M' })).toThrow(
    'IDLE: is set more than once: IDLE, OLD_IDLE',
  );
});
