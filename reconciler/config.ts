// The configuration of the reconciler, read from the environment.
import { z } from 'zod';
import { directoryCheck, platformVariables } from '../src/platform/directory-variables.ts';
import { platformFields } from '../src/platform/platform-fields.ts';
import { clientUrlRules } from '../src/service/clients/client-url-rules.ts';
import { httpUrl, integer, type ProcessSettings } from '../src/service/operations/config.ts';
import { isoDuration } from '../src/service/operations/duration.ts';
import {
  accessFields,
  databaseFields,
  processFields,
  redirectUriFields,
} from '../src/service/operations/process-fields.ts';
import { orderRule, withRules } from '../src/service/operations/settings-rules.ts';
import { tracingFields, tracingRules } from '../src/service/tracing/tracing-fields.ts';

const { LOG_LEVEL, URN_PREFIX } = processFields;
const { ACCESS_SERVICE_URL } = accessFields;
const { DATABASE_URL } = databaseFields;

const fields = z.object({
  DATABASE_URL: DATABASE_URL.describe('URL of the form service’s database'),
  LOG_LEVEL,
  URN_PREFIX,
  ACCESS_SERVICE_URL,
  ...platformFields,
  ...tracingFields,
  CLIENT_ID: platformFields.CLIENT_ID.describe(
    'Client id of the account in the realm core that reads form definitions and writes core clients; by default that of the form service',
  ),
  WARN_BEFORE: isoDuration('P3D').describe(
    'How long before the lock of a draft its applicant is warned; P0D sends no warning. A form definition may override this',
  ),
  LOCK_AFTER: isoDuration('P15D').describe(
    'Time between the last access to a draft and its lock. A form definition may override this',
  ),
  DELETE_AFTER: isoDuration('P15D').describe(
    'Time between the lock of a form and its deletion. A form definition may override this',
  ),
  BATCH_SIZE: integer(50, { min: 1, max: 10_000 }).describe(
    'Forms that one statement changes while requests are served; while no requests are served, up to 20 times as many. Larger batches need less time for each form, but block concurrent requests for longer',
  ),
  LEASE_DURATION: isoDuration('PT2M', { max: 'PT1H', positive: true }).describe(
    'How long a run keeps its lease after the last renewal. After a run has died, the next one can start only when the lease has expired',
  ),
  KUBECONFIG: z
    .string()
    .optional()
    .describe(
      'Path of the kubeconfig file for the cluster with the CoreClient resources; by default the cluster of the Pod',
    ),
  NAMESPACE: z
    .string()
    .optional()
    .describe('Namespace of the CoreClient resources; by default that of the Pod, or of the kubeconfig context'),
  CORE_CLIENTS: z
    .enum(['cluster', 'off'])
    .default('cluster')
    .describe('Where CoreClient resources are read: in the cluster, or nowhere (off), even if KUBECONFIG is set'),
  CORE_CLIENTS_OWNER: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/, 'must be 1 to 200 letters, digits, dots, slashes and hyphens')
    .optional()
    .describe(
      'Name under which the core configuration records which core clients this reconciler owns; by default the namespace. Clusters that share a platform need different owners',
    ),
  BUILDER_APP_URL: httpUrl()
    .optional()
    .describe('Public URL of the builder; if set, the reconciler keeps the core client builder-preview up to date'),
  CONSOLE_URL: httpUrl()
    .optional()
    .describe(
      'Public URL of the site that serves the console and the token handler; if set, the reconciler keeps the core client formgate-console up to date',
    ),
  ...redirectUriFields,
});

const rules = [...tracingRules, orderRule('WARN_BEFORE', 'LOCK_AFTER'), ...clientUrlRules];

export const configSchema = withRules(fields, ...rules);

export const settings: ProcessSettings<typeof configSchema> = {
  schema: configSchema,
  rules,
  checks: [directoryCheck],
  variables: platformVariables,
};

export type ReconcilerConfig = z.output<typeof configSchema>;

/** Number of Postgres connections of a run: one is for batches, the other one for the renewal of the lease. */
export const runConnections = 2;
