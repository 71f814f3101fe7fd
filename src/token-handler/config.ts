// The configuration of the token handler, from its environment. Whoever adds a part to the process adds its settings to
// the part's own section here; every problem of all of them is reported at once.
import { z } from 'zod';
import { platformFields } from '../platform/platform-fields.ts';
import { csv, flag, httpUrl, integer, isoDuration, orderRule, withRules } from '../service/operations/config.ts';
import { accessFields, databaseFields, processFields, processRules } from '../service/operations/process-fields.ts';
import { redisFields } from '../service/redis/redis-fields.ts';
import { keyRingProblem } from './keys/key-ring.ts';
import { isHeaderPattern } from './targets/untrusted-headers.ts';
import { type AllowedDomain, parseAllowedDomain } from './targets/upstream-policy.ts';

const clientFields = {
  KEY_RING: z
    .string()
    .superRefine((keys, context) => {
      const problem = keyRingProblem(keys);
      if (problem !== undefined) context.addIssue(problem);
    })
    .describe('name:base64,… of 32 bytes or more each; the first key seals, all of them open; the same in every pod'),
  PUBLIC_URL: httpUrl()
    .optional()
    .describe('Where the access service reaches this service, for back-channel logout; without it, there is none'),
  BUILDER_APP_URL: httpUrl()
    .optional()
    .describe('Public URL of the builder; with it, the core client builder-preview is written at startup'),
  ALLOW_INSECURE_REDIRECT_URIS: flag(false).describe('Lets redirect URIs be http for any host, not only for localhost'),
};

// Sign-in and sessions
const sessionFields = {
  ...redisFields,
  SESSION_STORE: z
    .enum(['redis', 'memory'])
    .default('redis')
    .describe('memory only for one process and trials: its sessions end with it'),
  SESSION_COOKIE: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,60}$/, 'must be the name of a cookie')
    .default('formgate_session')
    .describe('Name of the session cookie; one that begins with __Host- needs https'),
  SESSION_MAX_AGE: isoDuration('PT12H', { max: 'P30D' }).describe('Longest session, from its sign-in'),
  SESSION_IDLE: isoDuration('PT60M', { max: 'P30D' }).describe('Longest time between two requests of a session'),
  SIGN_IN_LIMIT: integer(100, { min: 1 }).describe(
    'Requests to sign-in and callback of one client address in a window',
  ),
  SIGN_IN_WINDOW: isoDuration('PT5M', { max: 'P1D' }).describe('Window of SIGN_IN_LIMIT'),
};

// Targets
const targetFields = {
  UPSTREAM_ALLOWED_DOMAINS: z
    .string()
    .optional()
    .transform((text, context) => (text === undefined ? undefined : parseAllowedDomains(text, context)))
    .describe(
      'Hosts that targets outside the platform may lead to: api.example.ca, *.example.ca, host:8443; any without',
    ),
  TARGET_DROPPED_HEADERS: csv()
    .refine((names) => names.every(isHeaderPattern), 'must be a list of header names, each perhaps with a trailing *')
    .describe(
      'Request headers that targets never get, besides those of docs/target-headers.md: X-Staff-Id, X-Internal-*',
    ),
  UPSTREAM_TIMEOUT: isoDuration('PT60S', { max: 'PT5M' }).describe('Longest wait for the first byte of an upstream'),
  UPSTREAM_CONNECTIONS: integer(256, { min: 1, max: 10_000 }).describe(
    'Connections to one upstream that requests share',
  ),
  UPSTREAM_PERSON_SHARE: integer(10, { min: 1, max: 100 }).describe(
    'Percent of UPSTREAM_CONNECTIONS that one person may use at a time; at least eight connections',
  ),
  UPSTREAM_TENANT_SHARE: integer(50, { min: 1, max: 100 }).describe(
    'Percent of UPSTREAM_CONNECTIONS that one tenant may use at a time',
  ),
  BODY_MIN_RATE: integer(1_024).describe(
    'Bytes per second that a client must send or take of a proxied body; 0 for no minimum',
  ),
  BODY_RATE_WINDOW: isoDuration('PT30S', { max: 'PT10M' }).describe(
    'Time of waiting for the client over which BODY_MIN_RATE is measured',
  ),
  STREAMS: integer(10_000, { min: 1, max: 100_000 }).describe(
    'Open WebSockets and event streams of this process; one tenant may have half of them',
  ),
  SESSION_STREAMS: integer(32, { min: 1, max: 10_000 }).describe('Open WebSockets and event streams of one session'),
  TARGET_SESSION_LIMIT: integer(1_200, { min: 1 }).describe('Target requests of one session in a window'),
  TARGET_ADDRESS_LIMIT: integer(6_000, { min: 1 }).describe('Target requests of one client address in a window'),
  TARGET_WINDOW: isoDuration('PT1M', { max: 'PT1H' }).describe('Window of both limits'),
};

function parseAllowedDomains(text: string, context: z.RefinementCtx<string | undefined>): AllowedDomain[] {
  const items = text.split(',').map((item) => item.trim());
  const domains = items.map(parseAllowedDomain);
  const isUnusable = domains.includes(undefined);
  if (isUnusable)
    context.addIssue('must be a list of host names, *.host names and addresses, each perhaps with a port');
  return isUnusable ? [] : (domains as AllowedDomain[]);
}

const settings = z.object({
  ...processFields,
  ...accessFields,
  ...databaseFields,
  ...platformFields,
  ...clientFields,
  ...sessionFields,
  ...targetFields,
});

export const configSchema = withRules(
  settings,
  ...processRules,
  orderRule('SESSION_IDLE', 'SESSION_MAX_AGE', { mayEqual: true }),
);

export type TokenHandlerConfig = z.output<typeof configSchema>;
