// The settings of the intake application, which serves the applicant's pages. Without a client id, the intake
// application is off.
import { z } from 'zod';
import { keyRingSetting } from '../../service/keys/key-ring.ts';
import { httpUrl, integer, secret } from '../../service/operations/config.ts';
import { isoDuration } from '../../service/operations/duration.ts';
import { limitRule, needsRule, type SettingsRule } from '../../service/operations/settings-rules.ts';

const gibibyte = 1_073_741_824;
const bytes = (gibibytes: number) => integer(gibibytes * gibibyte, { min: 1_024, max: 1_024 * gibibyte });
/** The maximum leaves room for the count of an email address, three times as many, in an integer of Postgres. */
const drafts = (defaultValue: number) => integer(defaultValue, { min: 1, max: 500_000_000 });

export const applyFields = {
  PUBLIC_URL: httpUrl()
    .optional()
    .describe(
      'Base URL at which browsers reach this process; without it, mails have no links to keep or delete a draft',
    ),
  APPLY_CLIENT_ID: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Client id of the intake application’s account in the realm core, with the role intake-application; without it, the intake application (/apply/api) is off',
    ),
  APPLY_CLIENT_SECRET: secret(8).optional().describe('Client secret of that account'),
  APPLY_KEY_RING: keyRingSetting()
    .optional()
    .describe(
      'Keys of the intake application’s cookies and of the links in mails, as name:base64,name:base64,… of 32 bytes or more each. The first key encrypts and signs, every key is accepted; the same in every pod',
    ),
  APPLY_API_URL: httpUrl()
    .optional()
    .describe('Base URL at which the intake application calls the form service; by default this process'),
  APPLY_REQUEST_LIMIT: integer(600, { min: 1 }).describe(
    'Requests to the intake application that each pod allows one client address in a minute',
  ),
  APPLY_CODE_LIMIT: integer(30, { min: 1 }).describe(
    'Codes that one client address may request or try at each pod in ten minutes; the form service also has limits for each form',
  ),
  APPLY_DRAFTS_PER_ADDRESS: drafts(20).describe(
    'Drafts that may be created in APPLY_DRAFTS_WINDOW from one client address; three times as many for one email address',
  ),
  APPLY_DRAFTS_PER_TENANT: drafts(1_000).describe('Drafts that may be created in APPLY_DRAFTS_WINDOW in one tenant'),
  APPLY_DRAFTS_TOTAL: drafts(5_000).describe(
    'Drafts that may be created in APPLY_DRAFTS_WINDOW in all tenants together. The first drafts of each tenant, up to a fiftieth of this number, do not count',
  ),
  APPLY_DRAFTS_WINDOW: isoDuration('PT1H', { max: 'P1D', positive: true }).describe(
    'Length of the window in which drafts and the sizes of uploaded files count; all pods count together',
  ),
  APPLY_FILE_TYPE: z
    .string()
    .regex(/^[a-zA-Z0-9-]{1,50}$/, 'must be the id of a file type')
    .default('form-supporting-documents')
    .describe('Type of applicants’ files at the platform’s file service'),
  APPLY_FILE_LIMIT: integer(10_485_760, { min: 1_024, max: 104_857_600 }).describe(
    'Largest file of an applicant, in bytes',
  ),
  APPLY_FILES_PER_FORM: integer(100, { min: 1, max: 1_000 }).describe(
    'Files that may be uploaded for one form, including those that it no longer names',
  ),
  APPLY_FILE_BYTES_PER_FORM: integer(524_288_000, { min: 1_024 }).describe(
    'Total size of the files that may be uploaded for one form, in bytes',
  ),
  APPLY_UPLOAD_LIMIT: integer(200, { min: 1 }).describe(
    'Files that one client address may upload at each pod in ten minutes',
  ),
  APPLY_UPLOAD_BYTES_PER_ADDRESS: bytes(1).describe(
    'Bytes that may be uploaded in APPLY_DRAFTS_WINDOW from one client address',
  ),
  APPLY_UPLOAD_BYTES_PER_TENANT: bytes(20).describe('Bytes that may be uploaded in APPLY_DRAFTS_WINDOW in one tenant'),
  APPLY_UPLOAD_BYTES_TOTAL: bytes(100).describe(
    'Bytes that may be uploaded in APPLY_DRAFTS_WINDOW in all tenants together. The first bytes of each tenant, up to a fiftieth of this number, do not count',
  ),
};

interface ApplyAccount {
  APPLY_CLIENT_ID?: string | undefined;
  APPLY_CLIENT_SECRET?: string | undefined;
  APPLY_KEY_RING?: string | undefined;
}

const requiredWithAccount = (name: 'APPLY_CLIENT_SECRET' | 'APPLY_KEY_RING'): SettingsRule => ({
  names: [name, 'APPLY_CLIENT_ID'],
  holds: (values: ApplyAccount) => values.APPLY_CLIENT_ID === undefined || values[name] !== undefined,
  problem: 'is required with APPLY_CLIENT_ID',
});

export const applyRules: SettingsRule[] = [
  needsRule('APPLY_CLIENT_SECRET', 'APPLY_CLIENT_ID'),
  limitRule('APPLY_DRAFTS_PER_ADDRESS', 'APPLY_DRAFTS_PER_TENANT'),
  limitRule('APPLY_DRAFTS_PER_TENANT', 'APPLY_DRAFTS_TOTAL'),
  limitRule('APPLY_FILE_LIMIT', 'APPLY_FILE_BYTES_PER_FORM'),
  limitRule('APPLY_FILE_LIMIT', 'APPLY_UPLOAD_BYTES_PER_ADDRESS'),
  limitRule('APPLY_UPLOAD_BYTES_PER_ADDRESS', 'APPLY_UPLOAD_BYTES_PER_TENANT'),
  limitRule('APPLY_UPLOAD_BYTES_PER_TENANT', 'APPLY_UPLOAD_BYTES_TOTAL'),
  requiredWithAccount('APPLY_CLIENT_SECRET'),
  requiredWithAccount('APPLY_KEY_RING'),
];
