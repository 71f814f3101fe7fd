// The configuration of the platform server: the schema of its environment variables.
import { z } from 'zod';
import {
  type ConfigCheck,
  integer,
  isReadableUrl,
  type ProcessSettings,
  secret,
} from '../service/operations/config.ts';
import { isoDuration } from '../service/operations/duration.ts';
import {
  accessFields,
  bodyLimit,
  databaseFields,
  processFields,
  processRules,
} from '../service/operations/process-fields.ts';
import { withRules } from '../service/operations/settings-rules.ts';
import { tracingFields } from '../service/tracing/tracing-fields.ts';
import { readReference } from './reference/reference-times.ts';
import { readSeed } from './seed-file.ts';

const { TENANT_HEADER: _unused, ...process } = processFields;

const fields = z.object({
  ...process,
  ...accessFields,
  ...databaseFields,
  ...tracingFields,
  DATABASE_POOL_SIZE: databaseFields.DATABASE_POOL_SIZE.describe(
    'Postgres connections that requests to this process share; jobs open up to WORKER_CONCURRENCY and 4 more',
  ),
  BODY_LIMIT: bodyLimit(4_194_304).describe('Largest request body, in bytes; a register is one body'),
  TENANT_CONFIGURATION_LIMIT: integer(1_073_741_824, { min: 1_048_576 }).describe(
    'Largest size of all configuration of a tenant, revisions included, in bytes as Postgres compresses it; a revision counts as at least 1 KiB',
  ),
  SMTP_URL: z
    .string()
    .regex(/^smtps?:\/\/[^/]/, 'must be an smtp:// or smtps:// URL')
    .refine(isReadableUrl, 'must be a valid URL: percent-encode special characters of the password')
    .describe('URL of the mail server, with user and password if the server requires them'),
  MAIL_FROM: z
    .string()
    .regex(/^[^\r\n]*[^\s<>@]+@[A-Za-z0-9.-]+>?$/, 'must be an address such as Forms <forms@example.org>')
    .describe('Sender of notices and codes, such as Forms <forms@example.org>'),
  CODE_KEY: secret(32).describe(
    'Key of the HMAC under which one-time codes are stored: 32 characters or more, the same in every pod',
  ),
  SEED_FILE: z
    .string()
    .optional()
    .describe(
      'JSON file with tenants and directory entries. Each start adds and changes what the file says, and deletes nothing',
    ),
  WORKER_CONCURRENCY: integer(4, { min: 1, max: 50 }).describe('Jobs that this process runs at the same time'),
  WORKER_STALE_AFTER: isoDuration('PT30S', { max: 'PT4H', positive: true }).describe(
    'Time without a heartbeat of a process after which other processes take over its jobs',
  ),
});

export const configSchema = withRules(fields, ...processRules);

const seedCheck: ConfigCheck = {
  names: ['SEED_FILE'],
  run: ({ SEED_FILE }: { SEED_FILE?: string }) => (SEED_FILE === undefined ? undefined : readSeed(SEED_FILE)),
};

export const settings: ProcessSettings<typeof configSchema> = {
  schema: configSchema,
  rules: processRules,
  checks: [seedCheck, { names: [], run: (_values, env) => readReference(env) }],
};

export type PlatformServerConfig = z.output<typeof configSchema>;

/** Number of connections in the pool for jobs. Notifications, heartbeats, scans and the maintenance each use one. */
export function jobConnections(config: Pick<PlatformServerConfig, 'WORKER_CONCURRENCY'>): number {
  return config.WORKER_CONCURRENCY + 4;
}
