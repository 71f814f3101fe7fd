// Computes the conditions Shadows and TargetsResolved of a resource. All functions are pure. If a check cannot be
// completed, its last result stays, so that an outage does not change a thousand statuses or hide a finding.
import type { Verdict } from './plan.ts';
import { type Condition, conditionOf } from './resource.ts';
import type { Shadows } from './shadows.ts';
import type { UpstreamState } from './upstreams.ts';

/** A condition without its times and its generation. */
export type Outcome = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/**
 * A tenant that has its own client with the same id as a core client. The token handler ignores the tenant's client: it
 * is shadowed. `name` is the tenant's id if its name is unknown.
 */
interface Affected {
  id: string;
  name: string;
}

/** Maximum number of tenants that the status of a resource lists by id. */
export const mostShadowedTenants = 50;
/** Maximum number of tenants or targets that the message of a condition lists. */
const mostListed = 10;

const notAccepted = { status: 'Unknown', reason: 'NotAccepted', message: 'The client is not accepted.' } as const;

/** Returns the tenants whose own client is shadowed by this resource's client, sorted by name. */
export function shadowedTenants(
  verdict: Verdict,
  shadows: Pick<Shadows, 'affected' | 'unread'> | undefined,
): Affected[] {
  const { clientId, resource } = verdict;
  if (clientId === undefined || !isInEffect(verdict)) return [];
  const before = resource.status.shadowedTenants ?? [];
  if (!shadows) return before.map((id) => ({ id, name: id }));
  const known = new Set(before);
  // An affected tenant still counts as affected while its configuration cannot be read.
  const stillUnread = shadows.unread.filter(({ id }) => known.has(id));
  const all = [...(shadows.affected.get(clientId) ?? []), ...stillUnread];
  return all.sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
}

export function shadowsOutcome(
  verdict: Verdict,
  tenants: readonly Affected[],
  shadows: Pick<Shadows, 'unread'> | undefined,
): Outcome {
  const type = 'Shadows' as const;
  if (!isInEffect(verdict)) return { type, ...notAccepted };
  if (!shadows) return kept(verdict, { type, reason: 'TenantsUnread', message: 'The tenants could not be listed.' });
  if (tenants.length > 0)
    return {
      type,
      status: 'True',
      reason: 'TenantsAffected',
      message: `These tenants have a client of their own with this id, which the token handler ignores: ${listed(tenants.map(({ name }) => printable(name)))}.`,
    };
  const none = {
    type,
    status: 'False',
    reason: 'NoTenantsAffected',
    message: 'No tenant has a client with this id.',
  } as const;
  const wasChecked = (conditionOf(verdict.resource.status, type)?.status ?? 'Unknown') !== 'Unknown';
  if (shadows.unread.length === 0 || wasChecked) return none;
  return {
    type,
    status: 'Unknown',
    reason: 'TenantsUnread',
    message: 'The clients of some tenants could not be read.',
  };
}

export function targetsOutcome(verdict: Verdict, upstreams: ReadonlyMap<string, UpstreamState>): Outcome {
  const type = 'TargetsResolved' as const;
  const { entry } = verdict;
  if (!entry) return { type, ...notAccepted };
  const inState = (state: UpstreamState) => entry.targets.filter(({ upstream }) => upstreams.get(upstream) === state);
  const absent = inState('absent');
  if (absent.length > 0)
    return {
      type,
      status: 'False',
      reason: 'UpstreamUnknown',
      message: `The directory has no usable entry for the upstream of these targets: ${listed(absent.map(({ id, upstream }) => `${id} (${upstream})`))}.`,
    };
  if (inState('unknown').length > 0)
    return kept(verdict, { type, reason: 'DirectoryUnread', message: 'The directory could not be read.' });
  return { type, status: 'True', reason: 'Resolved', message: 'The directory knows the upstream of each target.' };
}

/**
 * Returns the last result of the check `unknown.type` from the resource's status. Returns `unknown` if there is no last
 * result, or if the last result is about an earlier version of the resource.
 */
function kept({ resource }: Verdict, unknown: Omit<Outcome, 'status'>): Outcome {
  const before = conditionOf(resource.status, unknown.type);
  // A `Shadows` condition from an earlier version of the resource still counts, because it is about the client id,
  // which is immutable.
  const isCurrent = unknown.type === 'Shadows' || before?.observedGeneration === resource.generation;
  if (!before || before.reason === notAccepted.reason || !isCurrent) return { ...unknown, status: 'Unknown' };
  const { type, status, reason, message } = before;
  return { type, status, reason, message };
}

/** True if the core configuration contains a client from this resource, possibly from an earlier version of it. */
export function isInEffect({ resource, rejection }: Verdict): boolean {
  return !rejection || (rejection.reason === 'Invalid' && resource.status.syncedHash !== undefined);
}

/** Formats a list of at most `most` items, such as `a, b and 3 more`. */
export function listed(items: readonly string[], most = mostListed): string {
  const some = items.slice(0, most).join(', ');
  return items.length > most ? `${some} and ${items.length - most} more` : some;
}

/** Makes a tenant's name safe for a terminal, because the tenant's administrators choose the name. */
function printable(name: string): string {
  return [...name.replaceAll(/\p{C}/gu, '')].slice(0, 60).join('');
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
