// Counts what applicants create towards limits per client address, per tenant and in total, over all pods: drafts,
// which also count per email address, and the sizes of uploaded files. What is refused does not count.
import type { Response } from 'express';
import { networkOf } from '../../service/http/client-address.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { windowAt } from '../../service/limits/window-counts.ts';
import { normalAddress } from '../addresses/address.ts';
import { CallOutcomeUnknown } from './api.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import type { Limit } from './store.ts';

type CountOptions = Pick<ApplyRoutesOptions, 'store' | 'hashes' | 'countLimits' | 'metrics' | 'clock' | 'log'>;

interface Count {
  /** Takes the count back. Never rejects. */
  uncount(): Promise<void>;
  /** Counts a repeated request again, if its first request has taken the count back meanwhile. Never rejects. */
  recount(): Promise<void>;
}

interface Counted {
  /** The limits of one address, and what a person reads if one is reached. */
  own: { limits: Limit[]; detail: string };
  /** The limits that all applicants share. What fits into the tenant's reserve does not count towards the total. */
  shared: { tenant: Limit; reserve: Limit; total: Limit; detail: string };
}

/**
 * Counts a draft towards the limits, unless the same request was already counted in the current window. A repeated
 * request gets the same draft from the form service, so it must not count twice. `request` identifies the request.
 * Call `uncount` of the result if no draft was created, and `recount` otherwise. Throws Problem `too-many-requests` if
 * a limit of an address is reached, and `busy` if a shared limit is reached.
 */
export async function countDraft(
  options: CountOptions,
  { email, request }: { email: string; request: string },
  response: Response,
): Promise<Count> {
  const { perAddress, perTenant, total } = options.countLimits.drafts;
  const { id: tenantId } = tenantOf(response);
  const limit = (name: string, key: string, most: number) => limitOf(options, name, key, { most, amount: 1 });
  const own = [
    limit(retryLimit, `${tenantId}\0${request}`, 1),
    limit('apply-drafts-address', networkOf(response.locals.forwarded.address), perAddress),
    limit(
      'apply-drafts-email',
      `${tenantId}\0${normalAddress({ channel: 'email', address: email })}`,
      networksPerEmail * perAddress,
    ),
  ];
  const shared = {
    tenant: limit('apply-drafts-tenant', tenantId, perTenant),
    reserve: limit('apply-drafts-reserve', tenantId, reserveOf(total)),
    total: limit('apply-drafts-total', '', total),
  };
  return count(options, tenantId, {
    own: { limits: own, detail: 'Too many drafts were created from this network or for this email address.' },
    shared: { ...shared, detail: 'Too many drafts are being created at the moment.' },
  });
}

/**
 * Counts an upload of `bytes` towards the limits. Returns and throws as `countDraft` does; call `uncount` if the file
 * was certainly not stored.
 */
export async function countUpload(options: CountOptions, bytes: number, response: Response): Promise<Count> {
  const { perAddress, perTenant, total } = options.countLimits.uploads;
  const { id: tenantId } = tenantOf(response);
  // Counts KiB, because the column cannot hold the bytes of a day.
  const amount = Math.ceil(bytes / kibibyte);
  const limit = (name: string, key: string, most: number) =>
    limitOf(options, name, key, { most: Math.floor(most / kibibyte), amount });
  const own = [limit('apply-upload-bytes-address', networkOf(response.locals.forwarded.address), perAddress)];
  const shared = {
    tenant: limit('apply-upload-bytes-tenant', tenantId, perTenant),
    reserve: limit('apply-upload-bytes-reserve', tenantId, reserveOf(total)),
    total: limit('apply-upload-bytes-total', '', total),
  };
  return count(options, tenantId, {
    own: { limits: own, detail: 'Too many large files were uploaded from this network.' },
    shared: { ...shared, detail: 'Too many files are being uploaded at the moment.' },
  });
}

/**
 * The number of client networks that together can use up the limit of an email address. It exceeds 1, so that a
 * stranger who knows an address cannot keep its owner from creating drafts.
 */
const networksPerEmail = 3;
/** The part of a total limit that each tenant has in any case, so that strangers cannot use up the limit for all. */
const reserveOf = (total: number) => Math.floor(total / 50);
const kibibyte = 1_024;
const limitOf = ({ hashes }: CountOptions, name: string, key: string, of: { most: number; amount: number }): Limit => ({
  name,
  key: hashes.limit(name, key),
  ...of,
});

async function count(
  { store, countLimits, metrics, clock, log }: CountOptions,
  tenantId: string,
  { own, shared: { tenant, reserve, total, detail } }: Counted,
): Promise<Count> {
  const { index, secondsLeft } = windowAt(clock().getTime(), countLimits.window);
  const start = new Date(index * countLimits.window);
  let limits = [...own.limits, tenant, reserve];
  async function add(): Promise<string | undefined> {
    const reached = await store.count(tenantId, limits, start);
    if (reached !== reserve.name) return reached;
    limits = [...own.limits, tenant, total];
    return store.count(tenantId, limits, start);
  }
  const correct = (change: () => Promise<unknown>) => async () => {
    await change().catch((error) => log.warn({ err: error }, 'count of drafts or uploads not corrected'));
  };
  const reached = await add();
  if (reached === undefined)
    return { uncount: correct(() => store.uncount(tenantId, limits, start)), recount: async () => undefined };
  if (reached === retryLimit) return { uncount: async () => undefined, recount: correct(add) };
  metrics.rateLimited.inc({ limit: reached });
  const headers = { 'Retry-After': String(secondsLeft) };
  if (reached === tenant.name || reached === total.name) throw new Problem('busy', detail, { headers });
  throw new Problem('too-many-requests', own.detail, { headers });
}

/**
 * True if the form service certainly has not created a draft. After `conflict`, a concurrent request with the same key
 * may create the draft.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof Problem && !(error instanceof CallOutcomeUnknown) && error.slug !== 'conflict';
}

/** The name of a limit that allows one draft for each request. Only a retry of a counted request exceeds this limit. */
const retryLimit = 'apply-drafts-retry';
