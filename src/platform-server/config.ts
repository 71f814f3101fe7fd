// The configuration of the platform server, from its environment.
import { z } from 'zod';
import { integer, isoDuration, secret, withRules } from '../service/operations/config.ts';
import { accessFields, databaseFields, processFields, processRules } from '../service/operations/process-fields.ts';

const { TENANT_HEADER: _unused, ...process } = processFields;

const settings = z.object({
  ...process,
  ...accessFields,
  ...databaseFields,
  BODY_LIMIT: integer(4_194_304, { min: 1_024 }).describe('Largest request body, in bytes; registers come whole'),
  SMTP_URL: z
    .string()
    .regex(/^smtps?:\/\//, 'must be an smtp:// or smtps:// URL')
    .describe('Mail server, with user and password where it wants them'),
  MAIL_FROM: z
    .string()
    .regex(/^[^\r\n]*[^\s<>@]+@[A-Za-z0-9.-]+>?$/, 'must be an address such as Forms <forms@example.org>')
    .describe('Sender of notices and codes'),
  CODE_KEY: secret(32).describe('Key of the HMAC under which verify codes are stored'),
  SEED_FILE: z.string().optional().describe('JSON file of tenants and directory entries, applied at each start'),
  WORKER_CONCURRENCY: integer(4, { min: 1, max: 50 }).describe('Jobs that run at once'),
  WORKER_STALE_AFTER: isoDuration('PT30S').describe('Silence after which the jobs of a process are taken over'),
});

export const configSchema = withRules(settings, ...processRules);

export type PlatformServerConfig = z.output<typeof configSchema>;
