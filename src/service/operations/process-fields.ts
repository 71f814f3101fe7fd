// Defines the settings that several processes share. Each process adds the settings that only it needs.
import { z } from 'zod';
import { type TenantIssuers, tenantIssuersSetting } from '../auth/tenant-issuers.ts';
import { parseTrustedProxies } from '../http/client-address.ts';
import { tracingRules } from '../tracing/tracing-fields.ts';
import { csv, flag, httpUrl, integer, isReadableUrl } from './config.ts';
import { isoDuration } from './duration.ts';
import { orderRule, type SettingsRule } from './settings-rules.ts';

const port = (defaultValue: number) => integer(defaultValue, { max: 65_535 });

/**
 * The largest BODY_LIMIT, in bytes. A body is several texts in memory, and one value that Postgres stores within its
 * statement timeout of 15 s: on a machine with a slow disk, a save of 32 MB took up to 11 s.
 */
const largestBody = 67_108_864;

/** Parses a size of request bodies, in bytes. */
export const bodyLimit = (defaultValue: number) => integer(defaultValue, { min: 1_024, max: largestBody });

/** True for `*`, and for a scheme, host and optional port as browsers send them (RFC 6454 section 6.2). */
function isOrigin(text: string): boolean {
  return text === '*' || (/^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text);
}

/** Headers that TENANT_HEADER must not name, because they already have a meaning in HTTP or in this product. */
const reservedHeaders =
  /^(?:authorization|connection|content-.*|cookie|expect|forwarded|host|origin|referer|te|traceparent|tracestate|transfer-encoding|upgrade|x-csrf-token|x-forwarded-.*|x-request-id)$/i;

export const processFields = {
  HOST: z
    .string()
    .regex(/^[A-Za-z0-9.:%_-]+$/, 'must be an address or a host name')
    .default('0.0.0.0')
    .describe('Address that the process listens on'),
  PORT: port(8080).describe('Port of the API; 0 chooses a free port'),
  METRICS_PORT: port(9090).describe('Port of /metrics, /livez and /readyz; 0 chooses a free port'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .default('info')
    .describe('Lowest level that is logged'),
  URN_PREFIX: z
    .string()
    .regex(/^urn:[a-z0-9][a-z0-9-]{0,31}$/i, 'must look like urn:example')
    .default('urn:example')
    .describe('Prefix of the URNs of services, roles, tenants and registers'),
  TENANT_HEADER: z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, 'must be a header name')
    .refine((name) => !reservedHeaders.test(name), 'must not be a header with another meaning')
    .default('X-PLATFORM-TENANT')
    .describe('Request header in which the reverse proxy of a domain names the tenant of that domain'),
  TRUSTED_PROXIES: z
    .string()
    .default('loopback')
    .transform((text, context) => {
      const parsed = parseTrustedProxies(text);
      if (parsed === undefined) context.addIssue('must be a number of hops or a list of addresses and CIDRs');
      return parsed ?? 0;
    })
    .describe(
      'Proxies whose X-Forwarded-* headers the process trusts: a number of hops, or a list of addresses, CIDRs, loopback, linklocal and uniquelocal',
    ),
  CORS_ORIGINS: csv('*')
    .transform((origins) => (origins.join() === 'none' ? [] : origins))
    .refine(
      (origins) => origins.every(isOrigin),
      'must be *, none or a list of origins such as https://forms.example.org',
    )
    .refine((origins) => origins.length < 2 || !origins.includes('*'), 'must not list origins beside *')
    .describe(
      'Origins whose scripts may call the routes that take a bearer token; * allows every origin, none allows no origin',
    ),
  BODY_LIMIT: bodyLimit(1_048_576).describe('Largest request body, in bytes'),
  DRAIN_DEADLINE: isoDuration('PT25S', { max: 'PT1H' }).describe(
    'Longest time between SIGTERM and the end of running requests, including DRAIN_DELAY; then the process closes their connections',
  ),
  DRAIN_DELAY: isoDuration('PT0S', { max: 'PT10M' }).describe(
    'How long the process accepts connections after SIGTERM has ended its readiness, so that load balancers notice',
  ),
};

interface IssuerSettings {
  ACCESS_SERVICE_URL: string;
  ACCESS_SERVICE_PUBLIC_URL?: string | undefined;
  TENANT_ISSUERS: TenantIssuers;
}

/**
 * Forbids mapping an issuer below the identity provider's URL. Such an issuer would belong to two tenants: the tenant
 * to which it is mapped, and the tenant of its realm.
 */
const issuerRule: SettingsRule = {
  names: ['TENANT_ISSUERS', 'ACCESS_SERVICE_URL', 'ACCESS_SERVICE_PUBLIC_URL'],
  holds: ({ ACCESS_SERVICE_URL: inner, ACCESS_SERVICE_PUBLIC_URL: outer = inner, TENANT_ISSUERS }: IssuerSettings) =>
    !TENANT_ISSUERS?.issuers.some((issuer) => [inner, outer].some((base) => issuer.startsWith(`${base}/realms/`))),
  problem: 'must not map realms of ACCESS_SERVICE_URL or ACCESS_SERVICE_PUBLIC_URL, which belong to tenants already',
};

/** The rules that involve several settings of `processFields`, for `withRules`. */
export const processRules: SettingsRule[] = [
  issuerRule,
  ...tracingRules,
  orderRule('DRAIN_DELAY', 'DRAIN_DEADLINE'),
  {
    names: ['METRICS_PORT', 'PORT'],
    holds: ({ PORT, METRICS_PORT }: Record<'PORT' | 'METRICS_PORT', number>) => PORT === 0 || PORT !== METRICS_PORT,
    problem: 'must differ from PORT',
  },
];

export const accessFields = {
  ACCESS_SERVICE_URL: httpUrl().describe(
    'Base URL at which this process calls the identity provider, including a path such as /auth',
  ),
  ACCESS_SERVICE_PUBLIC_URL: httpUrl()
    .optional()
    .describe(
      'Base URL of the identity provider for browsers and in the issuer of tokens; by default ACCESS_SERVICE_URL',
    ),
  TENANT_ISSUERS: tenantIssuersSetting().describe(
    'Issuers of other identity providers, as realm=issuer,realm=issuer,… with the realm of the tenant that the issuer belongs to, such as town=https://login.example.org/; such a tenant has no realm at ACCESS_SERVICE_URL. The same in every process',
  ),
};

export const databaseFields = {
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL')
    .refine(isReadableUrl, 'must be a valid URL: percent-encode special characters of the password')
    .describe('URL of the database: Postgres 15 or newer, directly or through PgBouncer in transaction pooling mode'),
  DATABASE_POOL_SIZE: integer(10, { min: 1, max: 200 }).describe(
    'Postgres connections that requests to this process share',
  ),
};

/** The settings of the processes that write or register clients. */
export const redirectUriFields = {
  ALLOW_INSECURE_REDIRECT_URIS: flag(false).describe(
    'Allows http redirect URIs for every host, not only for localhost, 127.0.0.1 and [::1]',
  ),
  ALLOW_WILDCARD_REDIRECT_PATHS: flag(false).describe(
    'Allows redirect URIs whose path ends in /*. The identity provider then accepts every path below this prefix, so every page there can receive authorization codes',
  ),
};
