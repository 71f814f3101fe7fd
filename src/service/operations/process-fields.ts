// The configuration that every HTTP process shares. A process spreads what it needs into its own schema.
import { z } from 'zod';
import { parseTrustedProxies } from '../http/trusted-proxies.ts';
import { csv, httpUrl, integer, isoDuration, orderRule, type SettingsRule } from './config.ts';

const port = (defaultValue: number) => integer(defaultValue, { max: 65_535 });

/** As browsers send it: scheme, host and perhaps a port (RFC 6454 section 6.2). */
function isOrigin(text: string): boolean {
  return text === '*' || (/^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text);
}

export const processFields = {
  HOST: z.string().default('0.0.0.0').describe('Address to listen on'),
  PORT: port(8080).describe('Port of the service; 0 takes a free one'),
  METRICS_PORT: port(9090).describe('Port of /metrics, /livez and /readyz; 0 takes a free one'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .default('info')
    .describe('The least that is worth a log line'),
  URN_PREFIX: z
    .string()
    .regex(/^urn:[a-z0-9][a-z0-9-]{0,31}$/i, 'must look like urn:example')
    .default('urn:example')
    .describe('Prefix of service ids, roles, tenants and registers'),
  TENANT_HEADER: z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, 'must be a header name')
    .default('X-PLATFORM-TENANT')
    .describe('Header in which a proxy names the tenant'),
  TRUSTED_PROXIES: z
    .string()
    .default('loopback')
    .transform((text, context) => {
      const parsed = parseTrustedProxies(text);
      if (parsed === undefined) context.addIssue('must be a number of hops or a list of addresses and CIDRs');
      return parsed ?? 0;
    })
    .describe('Number of proxy hops, or a list of CIDRs, whose forwarded headers count'),
  CORS_ORIGINS: csv('*')
    .refine((origins) => origins.every(isOrigin), 'must be * or a list of origins such as https://forms.example.org')
    .describe('Origins that may call bearer routes from a browser; * for any'),
  BODY_LIMIT: integer(1_048_576, { min: 1_024 }).describe('Largest request body, in bytes'),
  DRAIN_DEADLINE: isoDuration('PT25S', { max: 'PT1H' }).describe('Longest time that a stop waits for running requests'),
  DRAIN_DELAY: isoDuration('PT0S', { max: 'PT10M' }).describe(
    'Time between readiness going off and the listener closing',
  ),
};

/** The rules between `processFields`, for `withRules`. */
export const processRules: SettingsRule[] = [
  orderRule('DRAIN_DELAY', 'DRAIN_DEADLINE'),
  {
    names: ['METRICS_PORT', 'PORT'],
    holds: ({ PORT, METRICS_PORT }: Record<'PORT' | 'METRICS_PORT', number>) => PORT === 0 || PORT !== METRICS_PORT,
    problem: 'must differ from PORT',
  },
];

export const accessFields = {
  ACCESS_SERVICE_URL: httpUrl().describe('Where calls to the access service go, path such as /auth included'),
  ACCESS_SERVICE_PUBLIC_URL: httpUrl().optional().describe('What tokens and browsers see; the same by default'),
};

export const databaseFields = {
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL')
    .describe('Postgres 15 or newer; a transaction-pooling PgBouncer may stand before it'),
  DATABASE_POOL_SIZE: integer(10, { min: 1, max: 200 }).describe('Connections per process'),
};
