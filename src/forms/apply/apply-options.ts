// The dependencies and limits of the routes of the intake application.
import type { Clock } from '../../service/clock.ts';
import type { LocalRateLimiter, RateLimiter } from '../../service/limits/rate-limit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { UploadStore } from '../forms/upload-store.ts';
import type { NoticeLinks } from '../notices/links.ts';
import type { FormApi } from './api.ts';
import type { ApplyCookies } from './cookies.ts';
import type { FileUpload } from './files.ts';
import type { ApplyGuards } from './guards.ts';
import type { ApplyHashes } from './hashes.ts';
import type { ApplyStore } from './store.ts';

interface SharedLimits {
  perAddress: number;
  perTenant: number;
  total: number;
}

/** What applicants may create in a window of time. */
export interface CountLimits {
  /** Numbers of drafts. `perAddress` applies to each client address. An email address has three times as many. */
  drafts: SharedLimits;
  /** Bytes of uploaded files. */
  uploads: SharedLimits;
  /** Length of the window in milliseconds. */
  window: number;
}

export interface ApplyRoutesOptions {
  guards: ApplyGuards;
  api: FormApi;
  cookies: ApplyCookies;
  hashes: ApplyHashes;
  store: ApplyStore;
  files: FileUpload;
  /** Records the uploaded files in the rows of their forms. */
  uploads: UploadStore;
  /** Maximum size of an uploaded file in bytes. */
  fileLimit: number;
  links: NoticeLinks;
  countLimits: CountLimits;
  /** Limits on the codes that are sent for one form id, per minute and per hour, even if no form has this id. */
  sends: { minute: LocalRateLimiter; hour: LocalRateLimiter };
  /** Limit on the wrong codes that are entered for one form id, per hour. */
  wrongCodes: RateLimiter;
  /** Prefix of the URNs of uploaded files. */
  urnPrefix: string;
  /** Lifetime of a code in milliseconds. */
  codeLifetime: number;
  metrics: Pick<Metrics, 'rateLimited' | 'queueRefusals'>;
  log: Logger;
  clock: Clock;
}
