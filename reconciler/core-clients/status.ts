// Computes a resource's status after a sync, and the Events for its transitions. Pure functions only. Messages contain
// no times or counts, so that a status changes only if the outcome changes.
import { isDeepStrictEqual } from 'node:util';
import type { Verdict } from './plan.ts';
import type { Condition, CoreClientResource, CoreClientStatus } from './resource.ts';

/** The result of writing an accepted resource's client. */
export type SyncResult =
  /** `revision` is undefined if the client was already up to date. */
  | { kind: 'synced'; revision: number | undefined }
  /** The configuration service refused this client. */
  | { kind: 'refused' }
  /** The configuration service failed. */
  | { kind: 'failed' };

export interface ClientEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  note: string;
}

interface Outcome {
  type: Condition['type'];
  isTrue: boolean;
  reason: string;
  message: string;
}

export function nextStatus(verdict: Verdict, result: SyncResult | undefined, now: Date): CoreClientStatus {
  const { resource, clientId, refusal, hash } = verdict;
  const accepted: Outcome = refusal
    ? { type: 'Accepted', isTrue: false, ...refusal }
    : { type: 'Accepted', isTrue: true, reason: 'Accepted', message: 'The resource describes a core client.' };
  const synced = syncedOutcome(verdict, result);
  const isReady = accepted.isTrue && synced.isTrue;
  const failing = accepted.isTrue ? synced : accepted;
  const ready: Outcome = isReady
    ? { type: 'Ready', isTrue: true, reason: 'Ready', message: 'Every tenant can register and use the client.' }
    : { ...failing, type: 'Ready', isTrue: false };
  const { revision, syncedHash } = keptFields(verdict);
  return {
    observedGeneration: resource.generation,
    ...(clientId !== undefined && { clientId }),
    ...defined({
      revision: result?.kind === 'synced' ? (result.revision ?? revision) : revision,
      syncedHash: result?.kind === 'synced' ? hash : syncedHash,
    }),
    conditions: [accepted, synced, ready].map((outcome) => toCondition(outcome, resource, now)),
  };
}

/**
 * The status fields of the last write. They are kept as long as the client that was written stays in the configuration.
 */
function keptFields({ resource, refusal }: Verdict): Pick<CoreClientStatus, 'revision' | 'syncedHash'> {
  const isKept = refusal === undefined || refusal.reason === 'Invalid';
  return isKept ? resource.status : {};
}

function defined<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function syncedOutcome({ resource, refusal }: Verdict, result: SyncResult | undefined): Outcome {
  const type = 'Synced' as const;
  if (result?.kind === 'synced')
    return {
      type,
      isTrue: true,
      reason: 'Synced',
      message: 'The core configuration contains the client as the resource describes it.',
    };
  const isEarlierThere = refusal?.reason === 'Invalid' && resource.status.syncedHash !== undefined;
  const earlier = isEarlierThere ? ' Its last accepted version stays in the core configuration.' : '';
  if (refusal) return { type, isTrue: false, reason: 'NotAccepted', message: `The client is not accepted.${earlier}` };
  return result?.kind === 'refused'
    ? { type, isTrue: false, reason: 'Refused', message: 'The configuration service refused the client.' }
    : {
        type,
        isTrue: false,
        reason: 'WriteFailed',
        message: 'The configuration service failed. The next run tries again.',
      };
}

function toCondition(outcome: Outcome, resource: CoreClientResource, now: Date): Condition {
  const status = outcome.isTrue ? 'True' : 'False';
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

function conditionOf(status: Partial<CoreClientStatus>, type: Condition['type']): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type);
}

/** True if the status in the cluster equals the next one. */
export function isSameStatus(present: Partial<CoreClientStatus>, next: CoreClientStatus): boolean {
  return isDeepStrictEqual(comparable(present), comparable(next));
}

function comparable(status: Partial<CoreClientStatus>) {
  const { observedGeneration, clientId, revision, syncedHash, conditions = [] } = status;
  const byType = Object.fromEntries(conditions.map((condition) => [condition.type, condition]));
  return { observedGeneration, clientId, revision, syncedHash, byType, count: conditions.length };
}

/** Returns the Events for the transitions from the status in the cluster to the next one, and for a repair. */
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
  return events;
}

function textOf({ reason, message }: Condition) {
  // The note of an Event may have at most 1,024 bytes.
  return { reason, note: message.slice(0, 1_000) };
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
