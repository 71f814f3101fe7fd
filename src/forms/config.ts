// The configuration of the form service, from its environment.
import { z } from 'zod';
import { platformFields } from '../platform/platform-fields.ts';
import { flag, integer, isoDuration, secret, withRules } from '../service/operations/config.ts';
import { accessFields, databaseFields, processFields, processRules } from '../service/operations/process-fields.ts';

const { TENANT_HEADER: _unused, ...process } = processFields;

const settings = z.object({
  ...process,
  ...accessFields,
  ...databaseFields,
  DATABASE_POOL_SIZE: databaseFields.DATABASE_POOL_SIZE.describe(
    'Connections for requests; the outbox dispatcher has three more, and changes of registers up to six',
  ),
  ...platformFields,
  CODE_KEY: secret(32).describe(
    'Key of the HMACs under which codes, addresses and idempotency keys are remembered; the same in every pod',
  ),
  CODE_LIFETIME: isoDuration('PT10M').describe('How long the notification service’s codes live; answered by send-code'),
  SUBSCRIBER_REMOVAL_DELAY: isoDuration('PT15M').describe(
    'Time between a deleted form’s last notice and the removal of its subscriber',
  ),
  ANONYMOUS_READ_LIMIT: integer(300, { min: 1 }).describe(
    'Reads of open registers without a token of one client address in a window, in each pod',
  ),
  ANONYMOUS_READ_WINDOW: isoDuration('PT1M', { max: 'PT1H' }).describe('Window of ANONYMOUS_READ_LIMIT'),
  DELETE_FILES: flag(false).describe('Whether files of a deleted form are deleted at the file service'),
});

export const configSchema = withRules(settings, ...processRules);

export type FormsConfig = z.output<typeof configSchema>;
