// The dependencies and limits of the routes of the intake application.
import type { Clock } from '../../service/clock.ts';
import type { RateLimiter } from '../../service/limits/rate-limit.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { NoticeLinks } from '../notices/links.ts';
import type { FormApi } from './api.ts';
import type { ApplyCookies } from './cookies.ts';
import type { FileUpload } from './files.ts';
import type { ApplyGuards } from './guards.ts';
import type { ApplyHashes } from './hashes.ts';
import type { ApplyStore } from './store.ts';

/** Maximum numbers of drafts that may be created in a window of time. */
export interface DraftLimits {
  /** Limit for one client address. The same limit applies to one email address. */
  perAddress: number;
  perTenant: number;
  total: number;
  /** Milliseconds. */
  window: number;
}

export interface ApplyRoutesOptions {
  guards: ApplyGuards;
  api: FormApi;
  cookies: ApplyCookies;
  hashes: ApplyHashes;
  store: ApplyStore;
  files: FileUpload;
  /** Largest file in bytes. */
  fileLimit: number;
  links: NoticeLinks;
  draftLimits: DraftLimits;
  /** Rate limits of code sends for one form id, per minute and per hour. They apply even if no such form exists. */
  sends: { minute: RateLimiter; hour: RateLimiter };
  /** Rate limit of wrong codes for one form id, per hour. */
  wrongCodes: RateLimiter;
  /** Prefix of the URNs of uploaded files. */
  urnPrefix: string;
  /** Lifetime of a code in milliseconds. */
  codeLifetime: number;
  metrics: Pick<Metrics, 'rateLimited'>;
  clock: Clock;
}
