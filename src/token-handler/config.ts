// Defines the token handler's configuration, which is read from the environment. A single error reports all problems.
import { z } from 'zod';
import { directoryCheck, platformVariables } from '../platform/directory-variables.ts';
import { platformFields } from '../platform/platform-fields.ts';
import { clientUrlRules } from '../service/clients/client-url-rules.ts';
import { systemClock } from '../service/clock.ts';
import { keyRingSetting } from '../service/keys/key-ring.ts';
import { csv, httpUrl, integer, type ProcessSettings } from '../service/operations/config.ts';
import { isoDuration } from '../service/operations/duration.ts';
import {
  accessFields,
  databaseFields,
  processFields,
  processRules,
  redirectUriFields,
} from '../service/operations/process-fields.ts';
import { isSet, limitRule, orderRule, type SettingsRule, withRules } from '../service/operations/settings-rules.ts';
import { redisFields, redisRules } from '../service/redis/redis-fields.ts';
import { tracingFields } from '../service/tracing/tracing-fields.ts';
import { type PageSettings, parsePageSettings } from './pages/settings.ts';
import { requiresHttps } from './sessions/cookie-name.ts';
import { isHeaderPattern } from './targets/untrusted-headers.ts';
import { type AllowedDomain, parseAllowedDomain } from './targets/upstream-policy.ts';

const clientFields = {
  KEY_RING: keyRingSetting().describe(
    'Keys that encrypt sessions and registrations, as name:base64,name:base64,… of 32 bytes or more each. The first key encrypts, every key decrypts; the same in every pod',
  ),
  TENANT_REGISTRATION_LIMIT: integer(1_000, { min: 1, max: 100_000 }).describe(
    'Clients that one tenant may register; does not apply to core clients, and to clients that are registered again',
  ),
  PUBLIC_URL: httpUrl()
    .optional()
    .describe(
      'Base URL at which the identity provider reaches this service for back-channel logout; without it, clients are registered without back-channel logout',
    ),
  BUILDER_APP_URL: httpUrl()
    .optional()
    .describe('Public URL of the builder; if set, the process writes the core client builder-preview at startup'),
  CONSOLE_URL: httpUrl()
    .optional()
    .describe(
      'Public URL of the site that serves the console and the token handler; if set, the process writes the core client formgate-console at startup',
    ),
  ...redirectUriFields,
};

// Settings of sign-in and sessions.
const sessionFields = {
  ...redisFields,
  SESSION_STORE: z
    .enum(['redis', 'memory'])
    .default('redis')
    .describe(
      'Where sessions are stored. memory is for trials with a single process: the sessions end with the process',
    ),
  SESSION_COOKIE: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,60}$/, 'must be the name of a cookie')
    .default('formgate_session')
    .describe('Name of the session cookie; a name that begins with __Host- requires https'),
  SESSION_MAX_AGE: isoDuration('PT12H', { max: 'P30D', positive: true }).describe(
    'Longest duration of a session, counted from the sign-in',
  ),
  SESSION_IDLE: isoDuration('PT60M', { max: 'P30D', positive: true }).describe(
    'Longest time between two requests of a session to targets; GET /sessions does not count. A session also ends when its refresh token expires, which with Keycloak’s defaults is 30 minutes after the last refresh',
  ),
  SESSIONS_VALID_FROM: z.iso
    .datetime({ offset: true, error: 'must be a time such as 2026-11-23T10:00:00Z' })
    .transform((text) => Date.parse(text))
    .refine((time) => time <= systemClock().getTime() + 60_000, 'must not be in the future: every sign-in would end')
    .optional()
    .describe(
      'Ends every session that began before this time, such as 2026-11-23T10:00:00Z; set it after a restore of Redis, which brings back sessions that were ended since the backup',
    ),
  TENANT_SESSION_LIMIT: integer(100_000, { min: 1 }).describe(
    'Sessions that one tenant may have, so that it cannot fill the memory of Redis; a further sign-in ends the oldest. A session that became idle counts until SESSION_MAX_AGE',
  ),
  REFRESH_CONCURRENCY: integer(8, { min: 1, max: 1_000 }).describe(
    'Token refreshes that one pod sends to one realm of the identity provider at the same time; further ones wait. One person has at most half of them',
  ),
  SIGN_IN_LIMIT: integer(100, { min: 1 }).describe(
    'Requests to the sign-in and callback endpoints that all pods together allow one client address in SIGN_IN_WINDOW; invalid logout tokens have the same limit, and are counted separately',
  ),
  SIGN_IN_WINDOW: isoDuration('PT5M', { max: 'P1D', positive: true }).describe(
    'Length of the window in which SIGN_IN_LIMIT counts',
  ),
  SESSION_REQUEST_LIMIT: integer(300, { min: 1 }).describe(
    'Requests to list and end sessions that all pods together allow one person, or one account with a bearer token, in a minute',
  ),
  SIGN_IN_PAGES: z
    .string()
    .optional()
    .transform((text, context) => parsePages(text, context))
    .describe(
      'Texts, name, support line, logo and colours of the pages that people see when a sign-in or logout fails, as JSON; docs/pages.md describes it',
    ),
};

// Settings of targets.
const targetFields = {
  UPSTREAM_ALLOWED_DOMAINS: z
    .string()
    .optional()
    .transform((text, context) => (text === undefined ? undefined : parseAllowedDomains(text, context)))
    .describe(
      'Hosts that targets outside the platform namespace may use, such as api.example.ca, *.example.ca or host:8443; if not set, every host',
    ),
  TARGET_DROPPED_HEADERS: csv()
    .refine((names) => names.every(isHeaderPattern), 'must be a list of header names, which may end in *')
    .describe(
      'Request headers that the proxy drops in addition to those in docs/target-headers.md, such as X-Staff-Id, X-Internal-*',
    ),
  UPSTREAM_TIMEOUT: isoDuration('PT60S', { max: 'PT5M', positive: true }).describe(
    'Longest wait for the first byte of an upstream’s response',
  ),
  UPSTREAM_CONNECTIONS: integer(256, { min: 1, max: 10_000 }).describe(
    'Connections to one upstream that proxied requests share; WebSockets, and event streams that are requested with Accept: text/event-stream, have their own',
  ),
  UPSTREAM_PERSON_SHARE: integer(10, { min: 1, max: 100 }).describe(
    'Percentage of UPSTREAM_CONNECTIONS that one person may use at a time; never less than eight connections',
  ),
  UPSTREAM_TENANT_SHARE: integer(50, { min: 1, max: 100 }).describe(
    'Percentage of UPSTREAM_CONNECTIONS that one tenant may use at a time',
  ),
  BODY_MIN_RATE: integer(1_024, { max: 1_048_576 }).describe(
    'Lowest rate, in bytes per second, at which a client must send or receive the body of a proxied request; 0 sets no minimum',
  ),
  BODY_RATE_WINDOW: isoDuration('PT30S', { max: 'PT10M', positive: true }).describe(
    'Time over which BODY_MIN_RATE is measured; only time in which the proxy waits for the client counts',
  ),
  STREAMS: integer(10_000, { min: 1, max: 100_000 }).describe(
    'Most open WebSockets and event streams in this process; one tenant may have half of them',
  ),
  SESSION_STREAMS: integer(32, { min: 1, max: 10_000 }).describe(
    'Most open WebSockets and event streams of one session',
  ),
  TARGET_SESSION_LIMIT: integer(1_200, { min: 1 }).describe(
    'Proxied requests that all pods together allow one session in TARGET_WINDOW',
  ),
  TARGET_ADDRESS_LIMIT: integer(6_000, { min: 1 }).describe(
    'Proxied requests that all pods together allow one client address in TARGET_WINDOW; requests to list and end sessions, and sign-outs, have the same limit, and are counted separately',
  ),
  TARGET_WINDOW: isoDuration('PT1M', { max: 'PT1H', positive: true }).describe(
    'Length of the window in which TARGET_SESSION_LIMIT and TARGET_ADDRESS_LIMIT count',
  ),
};

const metricsFields = {
  METRICS_TARGETS: z
    .enum(['on', 'off'])
    .default('off')
    .describe(
      'on adds a label with the id of the target to formgate_proxied_requests_total, for at most 100 targets; further ones count as other',
    ),
};

function parsePages(text: string | undefined, context: z.RefinementCtx<string | undefined>): PageSettings {
  const parsed = parsePageSettings(text);
  if ('settings' in parsed) return parsed.settings;
  for (const problem of parsed.problems) context.addIssue(problem);
  return z.NEVER;
}

function parseAllowedDomains(text: string, context: z.RefinementCtx<string | undefined>): AllowedDomain[] {
  const items = text.split(',');
  const domains = items.map((item) => parseAllowedDomain(item.trim())).filter((domain) => domain !== undefined);
  if (domains.length < items.length)
    context.addIssue('must be a list of host names, *.host names and addresses, which may have a port');
  return domains;
}

const fields = z.object({
  ...processFields,
  ...accessFields,
  ...databaseFields,
  BODY_LIMIT: processFields.BODY_LIMIT.describe('Largest request body, in bytes; does not apply to proxied requests'),
  DATABASE_POOL_SIZE: databaseFields.DATABASE_POOL_SIZE.describe(
    'Postgres connections that requests to this process share; changes of registrations open up to 4 more',
  ),
  ...platformFields,
  ...tracingFields,
  ...clientFields,
  ...sessionFields,
  ...targetFields,
  ...metricsFields,
});

const redisNames = ['REDIS_URL', 'REDIS_SENTINELS', 'REDIS_CLUSTER_NODES'] as const;
type SessionStoreSettings = Record<'SESSION_STORE' | (typeof redisNames)[number], unknown>;
const usesRedis = (values: SessionStoreSettings) => redisNames.some((name) => isSet(values[name]));

const sessionStoreRules: SettingsRule[] = [
  {
    names: ['SESSION_STORE', ...redisNames],
    holds: (values: SessionStoreSettings) => values.SESSION_STORE !== 'memory' || !usesRedis(values),
    problem: 'is memory, but a Redis is configured',
  },
  {
    names: [...redisNames, 'SESSION_STORE'],
    holds: (values: SessionStoreSettings) => values.SESSION_STORE !== 'redis' || usesRedis(values),
    problem: 'is required, unless SESSION_STORE is memory',
  },
];

/**
 * Browsers drop cookies with the prefixes __Host- and __Secure- if the request was not sent over https. If CONSOLE_URL
 * is http, people could therefore not sign in to the console.
 */
const cookieRule: SettingsRule = {
  names: ['SESSION_COOKIE', 'CONSOLE_URL'],
  holds: ({ SESSION_COOKIE, CONSOLE_URL }: { SESSION_COOKIE: string; CONSOLE_URL?: string }) =>
    !requiresHttps(SESSION_COOKIE) || !CONSOLE_URL?.startsWith('http:'),
  problem: 'must not begin with __Host- or __Secure- if CONSOLE_URL is http',
};

const rules = [
  ...processRules,
  ...redisRules,
  ...sessionStoreRules,
  ...clientUrlRules,
  cookieRule,
  orderRule('SESSION_IDLE', 'SESSION_MAX_AGE', { mayEqual: true }),
  limitRule('UPSTREAM_PERSON_SHARE', 'UPSTREAM_TENANT_SHARE'),
  limitRule('SESSION_STREAMS', 'STREAMS'),
  limitRule('TARGET_SESSION_LIMIT', 'TARGET_ADDRESS_LIMIT'),
];

export const configSchema = withRules(fields, ...rules);

export const settings: ProcessSettings<typeof configSchema> = {
  schema: configSchema,
  rules,
  checks: [directoryCheck],
  variables: platformVariables,
};

export type TokenHandlerConfig = z.output<typeof configSchema>;
