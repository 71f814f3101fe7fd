// Computes a resource's status after a sync, and the Events for its transitions. All functions are pure. A status must
// change only if the outcome changes, so messages contain nothing that differs between runs, such as times.
import { isDeepStrictEqual } from 'node:util';
import { mostShadowedTenants, type Outcome, shadowedTenants, shadowsOutcome, targetsOutcome } from './checks.ts';
import type { Verdict } from './plan.ts';
import { type Condition, type CoreClientResource, type CoreClientStatus, conditionOf } from './resource.ts';
import type { Shadows } from './shadows.ts';
import type { UpstreamState } from './upstreams.ts';

/** The result of the write of an accepted resource's client. */
export type SyncResult =
  /** The client is up to date. If `revision` is undefined, the status keeps its revision. */
  | { kind: 'synced'; revision: number | undefined }
  /** The configuration service refused this client. */
  | { kind: 'refused' }
  /** The configuration service failed. */
  | { kind: 'failed' };

/** Maximum length of an Event's note in bytes. The API server rejects longer notes. */
export const eventNoteLimit = 1_024;

export interface ClientEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  note: string;
}

/** The results of the checks that read the tenants and the directory. */
export interface Checks {
  /** The tenants with shadowed clients, and the unread tenants; undefined if the tenants could not be listed. */
  shadows: Pick<Shadows, 'affected' | 'unread'> | undefined;
  /** The state of each upstream, keyed by its URN. */
  upstreams: ReadonlyMap<string, UpstreamState>;
}

export function nextStatus(
  verdict: Verdict,
  result: SyncResult | undefined,
  checks: Checks,
  now: Date,
): CoreClientStatus {
  const { resource, clientId, rejection, hash } = verdict;
  const accepted: Outcome = rejection
    ? { type: 'Accepted', status: 'False', ...rejection }
    : { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'The resource describes a core client.' };
  const synced = syncedOutcome(verdict, result);
  const resolved = targetsOutcome(verdict, checks.upstreams);
  const tenants = shadowedTenants(verdict, checks.shadows);
  const shadows = shadowsOutcome(verdict, tenants, checks.shadows);
  const failing = [accepted, synced, resolved].find(({ status }) => status === 'False');
  const ready: Outcome = failing
    ? { ...failing, type: 'Ready' }
    : { type: 'Ready', status: 'True', reason: 'Ready', message: 'Every tenant can register and use the client.' };
  const kept = keptFields(verdict);
  const { revision, syncedHash } =
    result?.kind === 'synced' ? { revision: result.revision ?? kept.revision, syncedHash: hash } : kept;
  return {
    observedGeneration: resource.generation,
    ...(clientId !== undefined && { clientId }),
    ...(revision !== undefined && { revision }),
    ...(syncedHash !== undefined && { syncedHash }),
    ...(tenants.length > 0 && { shadowedTenants: tenants.map(({ id }) => id).slice(0, mostShadowedTenants) }),
    conditions: [accepted, synced, resolved, shadows, ready].map((outcome) => toCondition(outcome, resource, now)),
  };
}

/**
 * Returns the status fields that describe the last write. They are kept while the written client stays in the
 * configuration.
 */
function keptFields({ resource, rejection }: Verdict): Pick<CoreClientStatus, 'revision' | 'syncedHash'> {
  const isKept = rejection === undefined || rejection.reason === 'Invalid';
  return isKept ? resource.status : {};
}

function syncedOutcome({ resource, rejection }: Verdict, result: SyncResult | undefined): Outcome {
  const type = 'Synced' as const;
  if (result?.kind === 'synced')
    return {
      type,
      status: 'True',
      reason: 'Synced',
      message: 'The core configuration contains the client as the resource describes it.',
    };
  const isEarlierThere = rejection?.reason === 'Invalid' && resource.status.syncedHash !== undefined;
  const earlier = isEarlierThere ? ' Its last accepted version stays in the core configuration.' : '';
  if (rejection)
    return { type, status: 'False', reason: 'NotAccepted', message: `The client is not accepted.${earlier}` };
  return result?.kind === 'refused'
    ? { type, status: 'False', reason: 'Refused', message: 'The configuration service refused the client.' }
    : {
        type,
        status: 'False',
        reason: 'WriteFailed',
        message: 'The configuration service failed. The next run tries again.',
      };
}

function toCondition(outcome: Outcome, resource: CoreClientResource, now: Date): Condition {
  const { status } = outcome;
  const before = conditionOf(resource.status, outcome.type);
  return {
    type: outcome.type,
    status,
    observedGeneration: resource.generation,
    lastTransitionTime:
      before?.status === status ? before.lastTransitionTime : now.toISOString().replace(/\.\d+Z$/, 'Z'),
    reason: outcome.reason,
    message: outcome.message,
  };
}

/** True if the status in the cluster equals the next status. */
export function isSameStatus(present: Partial<CoreClientStatus>, next: CoreClientStatus): boolean {
  // A cluster with an older CRD drops shadowedTenants, so a missing list is not compared. Otherwise, every run would
  // write the status. A resource's first list is still written, because the condition Shadows changes at the same time.
  const { shadowedTenants } = present;
  const isSameList = shadowedTenants === undefined || isDeepStrictEqual(shadowedTenants, next.shadowedTenants);
  return isSameList && isDeepStrictEqual(comparable(present), comparable(next));
}

function comparable(status: Partial<CoreClientStatus>) {
  const { observedGeneration, clientId, revision, syncedHash, conditions = [] } = status;
  const byType = Object.fromEntries(conditions.map((condition) => [condition.type, condition]));
  return { observedGeneration, clientId, revision, syncedHash, byType, count: conditions.length };
}

/** Returns the Events for a repair, and for the transitions from the status in the cluster to the next status. */
export function eventsOf({ resource, change }: Verdict, next: CoreClientStatus): ClientEvent[] {
  const events: ClientEvent[] = [];
  const accepted = transition(resource.status, next, 'Accepted');
  if (accepted?.status === 'False') events.push({ type: 'Warning', ...textOf(accepted) });
  else if (accepted && conditionOf(resource.status, 'Accepted')) events.push({ type: 'Normal', ...textOf(accepted) });
  const synced = transition(resource.status, next, 'Synced');
  if (synced?.status === 'True') events.push({ type: 'Normal', ...textOf(synced) });
  else if (synced && synced.reason !== 'NotAccepted') events.push({ type: 'Warning', ...textOf(synced) });
  if (change === 'repaired' && conditionOf(next, 'Synced')?.status === 'True')
    events.push({
      type: 'Warning',
      reason: 'Repaired',
      note: 'Others had changed or removed the client in the core configuration. It was repaired.',
    });
  return [
    ...events,
    ...findingEvents(resource.status, next, { type: 'TargetsResolved', bad: 'False' }),
    ...findingEvents(resource.status, next, { type: 'Shadows', bad: 'True' }),
  ];
}

/**
 * Returns an Event if a finding (a condition whose status is `bad`) appears, disappears, or changes its message, for
 * example because another tenant is affected.
 */
function findingEvents(
  present: Partial<CoreClientStatus>,
  next: CoreClientStatus,
  { type, bad }: { type: Condition['type']; bad: Condition['status'] },
): ClientEvent[] {
  const before = conditionOf(present, type);
  const after = conditionOf(next, type);
  if (after?.status === bad)
    return before?.status === bad && before.message === after.message ? [] : [{ type: 'Warning', ...textOf(after) }];
  const isGone = before?.status === bad && after && after.status !== 'Unknown';
  return isGone ? [{ type: 'Normal', ...textOf(after) }] : [];
}

function textOf({ reason, message }: Condition) {
  return { reason, note: cutToBytes(message, eventNoteLimit) };
}

function transition(
  present: Partial<CoreClientStatus>,
  next: CoreClientStatus,
  type: Condition['type'],
): Condition | undefined {
  const before = conditionOf(present, type);
  const after = conditionOf(next, type);
  return after && (before?.status !== after.status || before.reason !== after.reason) ? after : undefined;
}

/** Cuts the text to at most `limit` bytes of UTF-8, without splitting a character. */
export function cutToBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit));
  return text.slice(0, read);
}
