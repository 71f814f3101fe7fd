// The configuration of the form service, read from the environment.
import { z } from 'zod';
import { directoryCheck, platformVariables } from '../platform/directory-variables.ts';
import { platformFields } from '../platform/platform-fields.ts';
import { type ConfigCheck, csv, flag, integer, type ProcessSettings, secret } from '../service/operations/config.ts';
import { isoDuration } from '../service/operations/duration.ts';
import { accessFields, databaseFields, processFields, processRules } from '../service/operations/process-fields.ts';
import { type SettingsRule, withRules } from '../service/operations/settings-rules.ts';
import { tracingFields } from '../service/tracing/tracing-fields.ts';
import { applyFields, applyRules } from './apply/settings.ts';
import { requirePages } from './pages/built-pages.ts';
import { type PageName, pageNames } from './pages/page.ts';

const { TENANT_HEADER: _unused, ...process } = processFields;

const fields = z.object({
  ...process,
  ...accessFields,
  ...databaseFields,
  DATABASE_POOL_SIZE: databaseFields.DATABASE_POOL_SIZE.describe(
    'Postgres connections that requests to this process share; the outbox dispatcher opens up to 3 more, changes of registers up to 6 more',
  ),
  ...platformFields,
  ...tracingFields,
  CODE_KEY: secret(32).describe(
    'Key of the HMACs under which codes, addresses and idempotency keys are stored: 32 characters or more, the same in every pod',
  ),
  CODE_LIFETIME: isoDuration('PT10M', { max: 'P1D', positive: true }).describe(
    'Lifetime of the codes that the notification service sends. send-code returns the expiry that follows from it; the notification service itself decides when a code expires',
  ),
  CODE_CHANNELS: csv('email,sms')
    .pipe(z.array(z.enum(['email', 'sms'])).min(1, 'must name at least one channel'))
    .describe(
      'Channels to which the notification service can send codes. An applicant without an account who has none of them cannot create a form. Set it to email if the platform has no provider for text messages. A channel is also left out if the notification service says that it sends no codes there',
    ),
  SUBSCRIBER_REMOVAL_DELAY: isoDuration('PT15M', { max: 'P30D' }).describe(
    'Time between the delivery of a form-deleted event and the deletion of the form’s subscriber at the notification service, which needs it to send the notice. The time grows with NOTICE_TIME if the notification service cannot say whether it has sent the notice',
  ),
  NOTICE_TIME: isoDuration('PT11S', { max: 'PT5M' }).describe(
    'Time that the notification service takes for one event. It handles events one at a time, so a subscriber is kept for longer after many events. Without effect if the notification service reports the pending notices of a subscriber',
  ),
  ANONYMOUS_READ_LIMIT: integer(300, { min: 1 }).describe(
    'Register reads without a token that each pod allows one client address in ANONYMOUS_READ_WINDOW',
  ),
  ANONYMOUS_READ_WINDOW: isoDuration('PT1M', { max: 'PT1H', positive: true }).describe(
    'Length of the window in which ANONYMOUS_READ_LIMIT counts',
  ),
  TENANT_STORAGE_LIMIT: integer(34_359_738_368, { min: 1_048_576 }).describe(
    'Bytes that the forms of one tenant, and what their changes and deletions leave behind, may occupy in Postgres. Beyond it, new forms are refused; beyond 1.25 times as much, saves and the return of forms to their applicants are refused too. The same in every pod',
  ),
  DELETE_FILES: flag(false).describe('Whether the deletion of a form also deletes its files at the file service'),
  PAGES: csv()
    .pipe(z.array(z.enum(pageNames, 'must be a list of apply and console')))
    .describe('Pages for people that the process serves: apply (`/apply`, for applicants) and console (`/console`)'),
  ...applyFields,
});

const applyPageRule: SettingsRule = {
  names: ['PAGES', 'APPLY_CLIENT_ID'],
  holds: ({ PAGES, APPLY_CLIENT_ID }: { PAGES: PageName[]; APPLY_CLIENT_ID?: string | undefined }) =>
    !PAGES.includes('apply') || APPLY_CLIENT_ID !== undefined,
  problem: 'must not name apply without APPLY_CLIENT_ID: its pages call the intake application',
};

const rules = [...processRules, ...applyRules, applyPageRule];

export const configSchema = withRules(fields, ...rules);

const pagesCheck: ConfigCheck = {
  names: ['PAGES'],
  run: ({ PAGES }: { PAGES: PageName[] }) => requirePages(PAGES),
};

export const settings: ProcessSettings<typeof configSchema> = {
  schema: configSchema,
  rules,
  checks: [directoryCheck, pagesCheck],
  variables: platformVariables,
};

export type FormsConfig = z.output<typeof configSchema>;
