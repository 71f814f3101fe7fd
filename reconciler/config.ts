// The configuration of the reconciler, from its environment.
import { z } from 'zod';
import { platformFields } from '../src/platform/platform-fields.ts';
import { flag, httpUrl, integer, isoDuration, orderRule, withRules } from '../src/service/operations/config.ts';
import { accessFields, databaseFields, processFields } from '../src/service/operations/process-fields.ts';

const { LOG_LEVEL, URN_PREFIX } = processFields;
const { ACCESS_SERVICE_URL } = accessFields;
const { DATABASE_URL } = databaseFields;

const settings = z.object({
  DATABASE_URL: DATABASE_URL.describe('The form service’s database'),
  LOG_LEVEL,
  URN_PREFIX,
  ACCESS_SERVICE_URL,
  ...platformFields,
  CLIENT_ID: platformFields.CLIENT_ID.describe(
    'The account in realm core that definitions are read and core clients are written with; default the form service’s',
  ),
  WARN_BEFORE: isoDuration('P3D').describe(
    'How long before its lock the applicant is warned of it; P0D for no warning. Definitions may say otherwise',
  ),
  LOCK_AFTER: isoDuration('P15D').describe(
    'Time from the last access of a draft to its lock. Definitions may say otherwise',
  ),
  DELETE_AFTER: isoDuration('P15D').describe(
    'Time from the lock of a form to its deletion. Definitions may say otherwise',
  ),
  BATCH_SIZE: integer(50, { min: 1, max: 10_000 }).describe(
    'Forms in one statement. A larger one takes less time for each form and makes requests wait longer',
  ),
  TURN_LEASE: isoDuration('PT2M', { max: 'PT1H' }).describe(
    'How long after the last sign of life of a run that died another one may take the turn',
  ),
  KUBECONFIG: z
    .string()
    .optional()
    .describe('Path of the file that names the cluster of the CoreClient resources; default the Pod’s own cluster'),
  NAMESPACE: z
    .string()
    .optional()
    .describe('The namespace of the CoreClient resources; default that of the Pod, or of the context'),
  CORE_CLIENTS: z
    .enum(['cluster', 'off'])
    .default('cluster')
    .describe('off where no cluster is to be asked for CoreClient resources, whatever KUBECONFIG says'),
  CORE_CLIENTS_OWNER: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/, 'must be 1 to 200 letters, digits, dots, slashes and hyphens')
    .optional()
    .describe(
      'Whose core clients these are in the record of the core configuration, where several clusters share a platform; default the namespace',
    ),
  BUILDER_APP_URL: httpUrl().optional().describe('Where the builder is; the client builder-preview is kept for it'),
  ALLOW_INSECURE_REDIRECT_URIS: flag(false).describe('Whether redirect URIs of other hosts than this one may be http'),
});

export const configSchema = withRules(settings, orderRule('WARN_BEFORE', 'LOCK_AFTER'));

export type ReconcilerConfig = z.output<typeof configSchema>;
