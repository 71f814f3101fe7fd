// What a resource's status says after a sync, and which transitions are told as Events: pure. Messages hold no times or
// counts, so that a status changes only when what it tells of does.
import type { Verdict } from './plan.ts';
import type { Condition, CoreClientResource, CoreClientStatus } from './resource.ts';

/** What became of an accepted resource's client in this sync. `revision` is absent where it stood there already. */
export type SyncResult =
  | { kind: 'synced'; revision: number | undefined }
  /** The configuration service refused this very client. */
  | { kind: 'refused' }
  /** The configuration service could not be asked, or failed. */
  | { kind: 'failed' };

/** An Event to create, or a transition to tell. */
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

/** What was written for a resource stays true while its client stays where it is. */
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
      message: 'The core configuration holds the client as the resource describes it.',
    };
  const isEarlierThere = refusal?.reason === 'Invalid' && resource.status.syncedHash !== undefined;
  const earlier = isEarlierThere ? ' What was last written of it stays in the core configuration.' : '';
  if (refusal) return { type, isTrue: false, reason: 'NotAccepted', message: `The client is not accepted.${earlier}` };
  return result?.kind === 'refused'
    ? { type, isTrue: false, reason: 'Refused', message: 'The configuration service refused the client.' }
    : { type, isTrue: false, reason: 'WriteFailed', message: 'The configuration service failed; it is tried again.' };
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

/** Whether the cluster holds this status already. */
export function isSameStatus(present: Partial<CoreClientStatus>, next: CoreClientStatus): boolean {
  const fields = ['observedGeneration', 'clientId', 'revision', 'syncedHash'] as const;
  if (fields.some((field) => present[field] !== next[field])) return false;
  if (present.conditions?.length !== next.conditions.length) return false;
  return next.conditions.every((condition) => {
    const before = conditionOf(present, condition.type);
    return before !== undefined && sameCondition(before, condition);
  });
}

function sameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration &&
    a.lastTransitionTime === b.lastTransitionTime
  );
}

/** The transitions from the status in the cluster to the next, and a repair, which is none. */
export function eventsOf({ resource, change }: Verdict, next: CoreClientStatus): ClientEvent[] {
  const events: ClientEvent[] = [];
  const accepted = transition(resource.status, next, 'Accepted');
  if (accepted?.status === 'False') events.push({ type: 'Warning', ...told(accepted) });
  else if (accepted && conditionOf(resource.status, 'Accepted')) events.push({ type: 'Normal', ...told(accepted) });
  const synced = transition(resource.status, next, 'Synced');
  if (synced?.status === 'True') events.push({ type: 'Normal', ...told(synced) });
  else if (synced && synced.reason !== 'NotAccepted') events.push({ type: 'Warning', ...told(synced) });
  if (change === 'repaired' && conditionOf(next, 'Synced')?.status === 'True')
    events.push({
      type: 'Warning',
      reason: 'Repaired',
      note: 'The client had been changed or removed in the core configuration by others. It was put right.',
    });
  return events;
}

function told({ reason, message }: Condition) {
  // An Event's note holds 1,024 bytes.
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
