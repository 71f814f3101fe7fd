// The configuration of the token handler, from its environment. Whoever adds a part to the process adds its settings to
// the part's own section here; every problem of all of them is reported at once.
import { z } from 'zod';
import { platformFields } from '../platform/platform-fields.ts';
import { flag, httpUrl, integer, isoDuration } from '../service/config.ts';
import { keyRingProblem } from '../service/key-ring.ts';
import { accessFields, databaseFields, processFields } from '../service/process-fields.ts';
import { redisFields } from '../service/redis-fields.ts';

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
const targetFields = {};

export const configSchema = z.object({
  ...processFields,
  ...accessFields,
  ...databaseFields,
  ...platformFields,
  ...clientFields,
  ...sessionFields,
  ...targetFields,
});

export type TokenHandlerConfig = z.output<typeof configSchema>;
