// Composes the intake application. It uses the public API of the form service, and has its own account, tables and
// limits. Only uploaded files are recorded in the form service's own table, because its deletions must find them.
import type { Platform } from '../../platform/platform.ts';
import type { Clock } from '../../service/clock.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createRateLimits } from '../../service/limits/rate-limit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { Urns } from '../../service/urn.ts';
import type { FormsConfig } from '../config.ts';
import { createUploadStore } from '../forms/upload-store.ts';
import { createNoticeLinks, type NoticeLinks } from '../notices/links.ts';
import { createFormApi, type FormApi } from './api.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { createApplyCookies } from './cookies.ts';
import { createFileUpload } from './files.ts';
import { createApplyGuards } from './guards.ts';
import { createApplyHashes } from './hashes.ts';
import { createApplyStore } from './store.ts';

export interface IntakeApplicationOptions {
  config: FormsConfig;
  platform: Platform;
  pool: SharedPool;
  urns: Urns;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  /** Returns the URL at which this process serves its own calls. Call it only after the process listens. */
  ownUrl(): string;
}

export interface IntakeApplication {
  routes: ApplyRoutesOptions;
  api: FormApi;
}

/**
 * Time limit in milliseconds of a call to the form service. The form service may in turn call several services of the
 * platform.
 */
const longestCall = 45_000;
const [minute, hour] = [60_000, 3_600_000];

/**
 * Creates the links of notices. Returns undefined if the intake application has no client id or key ring, or if
 * `PUBLIC_URL` is not set.
 */
export function noticeLinksOf(config: FormsConfig): NoticeLinks | undefined {
  const { APPLY_CLIENT_ID: clientId, APPLY_KEY_RING: ring, PUBLIC_URL: publicUrl } = config;
  if (clientId === undefined || ring === undefined || publicUrl === undefined) return undefined;
  return createNoticeLinks({ keys: createKeyRing(ring), publicUrl });
}

/** Returns undefined if the intake application has no account or no key ring, and is therefore off. */
export function createIntakeApplication(options: IntakeApplicationOptions): IntakeApplication | undefined {
  const { config, platform, pool, urns, log, metrics, clock, ownUrl } = options;
  const { APPLY_CLIENT_ID: clientId, APPLY_CLIENT_SECRET: clientSecret, APPLY_KEY_RING: ring } = config;
  if (clientId === undefined || clientSecret === undefined || ring === undefined) return undefined;
  const keys = createKeyRing(ring);
  const account = platform.accountOf(clientId, clientSecret);
  const address = { apiUrl: config.APPLY_API_URL, ownUrl };
  const api = createFormApi({ ...address, account, log, metrics, timeoutMs: longestCall });
  const cookies = createApplyCookies({ keys, clock });
  const limits = createRateLimits({ log, clock, metrics });
  const publicUrl = config.PUBLIC_URL;
  const store = createApplyStore(pool);
  const guards = createApplyGuards({
    ...{ cookies, store },
    tenants: platform.tenants,
    publicOrigin: publicUrl && new URL(publicUrl).origin,
    requests: limits.local({ name: 'apply-requests', most: config.APPLY_REQUEST_LIMIT, window: minute }),
    codes: limits.local({ name: 'apply-codes', most: config.APPLY_CODE_LIMIT, window: 10 * minute }),
    uploads: limits.local({ name: 'apply-uploads', most: config.APPLY_UPLOAD_LIMIT, window: 10 * minute }),
  });
  const routes = {
    ...{ guards, api, cookies, store, clock, log, metrics },
    hashes: createApplyHashes(keys),
    files: createFileUpload({
      directory: platform.directory,
      account,
      urns,
      fileType: config.APPLY_FILE_TYPE,
      metrics,
    }),
    fileLimit: config.APPLY_FILE_LIMIT,
    uploads: createUploadStore({
      pool,
      limits: { files: config.APPLY_FILES_PER_FORM, bytes: config.APPLY_FILE_BYTES_PER_FORM },
      deleteFiles: config.DELETE_FILES,
    }),
    links: createNoticeLinks({ keys, publicUrl: publicUrl ?? '' }),
    countLimits: {
      drafts: {
        perAddress: config.APPLY_DRAFTS_PER_ADDRESS,
        perTenant: config.APPLY_DRAFTS_PER_TENANT,
        total: config.APPLY_DRAFTS_TOTAL,
      },
      uploads: {
        perAddress: config.APPLY_UPLOAD_BYTES_PER_ADDRESS,
        perTenant: config.APPLY_UPLOAD_BYTES_PER_TENANT,
        total: config.APPLY_UPLOAD_BYTES_TOTAL,
      },
      window: config.APPLY_DRAFTS_WINDOW,
    },
    sends: {
      minute: limits.local({ name: 'apply-sends', most: 1, window: minute }),
      hour: limits.local({ name: 'apply-sends-hour', most: 5, window: hour }),
    },
    wrongCodes: limits.local({ name: 'apply-wrong-codes', most: 5, window: hour }),
    codeLifetime: config.CODE_LIFETIME,
    urnPrefix: urns.prefix,
  };
  return { routes, api };
}
