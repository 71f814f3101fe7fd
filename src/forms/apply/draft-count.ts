// Counts the drafts that applicants create towards four limits: per client address, per email address, per tenant and
// in total. A draft that the form service refuses does not count.
import type { Response } from 'express';
import { networkOf } from '../../service/http/client-address.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { windowAt } from '../../service/limits/window-counts.ts';
import { UnansweredCall } from './api.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';

/**
 * Counts a draft towards the limits, unless the same request was already counted in the current window. A repeated
 * request gets the same draft from the form service, so it must not count twice. `request` identifies the request.
 * Returns a function that takes the count back; call it if no draft was created. Throws Problem `too-many-requests` if
 * a limit of an address is reached, and `busy` if a shared limit is reached.
 */
export async function countDraft(
  { store, hashes, draftLimits, metrics, clock, log }: ApplyRoutesOptions,
  { email, request }: { email: string; request: string },
  response: Response,
): Promise<() => Promise<void>> {
  const { perAddress, perTenant, total, window } = draftLimits;
  const { id: tenantId } = tenantOf(response);
  const limit = (name: string, key: string, most: number) => ({ name, key: hashes.limit(name, key), most });
  const limits = [
    limit(retryLimit, `${tenantId}\0${request}`, 1),
    limit('apply-drafts-address', networkOf(response.locals.forwarded.address), perAddress),
    limit('apply-drafts-email', `${tenantId}\0${email.trim().toLowerCase()}`, perAddress),
    limit('apply-drafts-tenant', tenantId, perTenant),
    limit('apply-drafts-total', '', total),
  ];
  const { index, secondsLeft } = windowAt(clock().getTime(), window);
  const start = new Date(index * window);
  const reached = await store.countDraft(tenantId, limits, start);
  if (reached === undefined)
    return () =>
      store
        .uncountDraft(tenantId, limits, start)
        .catch((error: unknown) => log.warn({ err: error }, 'count of drafts not corrected'));
  // This request repeats a counted request. Only the first request takes its count back.
  if (reached === retryLimit) return async () => undefined;
  metrics.rateLimited.inc({ limit: reached });
  const headers = { 'Retry-After': String(secondsLeft) };
  const isShared = reached === 'apply-drafts-tenant' || reached === 'apply-drafts-total';
  if (isShared) throw new Problem('busy', 'Too many drafts are being created at the moment.', { headers });
  throw new Problem('too-many-requests', 'Too many drafts were created from this network or for this email address.', {
    headers,
  });
}

/**
 * True if the form service certainly has not created a draft. After `conflict`, a concurrent request with the same key
 * may create the draft.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof Problem && !(error instanceof UnansweredCall) && error.slug !== 'conflict';
}

/** The name of a limit that allows one draft for each request. Only a retry of a counted request exceeds this limit. */
const retryLimit = 'apply-drafts-retry';
