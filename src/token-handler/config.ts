// The configuration of the token handler, from its environment. Whoever adds a part to the process adds its settings to
// the part's own section here; every problem of all of them is reported at once.
import { z } from 'zod';
import { platformFields } from '../platform/platform-fields.ts';
import { flag, httpUrl } from '../service/config.ts';
import { keyRingProblem } from '../service/key-ring.ts';
import { accessFields, databaseFields, processFields } from '../service/process-fields.ts';

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
const sessionFields = {};

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
