// Decides which resource gets which client, and what to write to the core configuration. All functions are pure. A plan
// never changes a client that this reconciler does not own.
import type { ClientEntry } from '../../src/service/clients/client-rules.ts';
import { type CoreClientRules, createCoreClientParser, hashEntry } from './core-client.ts';
import type { CoreDocument } from './document.ts';
import type { CoreClientResource } from './resource.ts';

/** Why a resource is rejected. The resource's condition `Accepted` gets `reason` as its field `reason`. */
export interface Rejection {
  reason: 'Invalid' | 'Reserved' | 'Duplicate' | 'NotOwned';
  message: string;
}

/** The change of an accepted resource's client. `repaired`: others had changed or removed the client. */
export type Change = 'none' | 'created' | 'updated' | 'repaired';

export type Verdict = { resource: CoreClientResource; clientId: string | undefined } & (
  | { rejection: Rejection; entry?: never; change?: never; hash?: never }
  | { rejection?: never; entry: ClientEntry; change: Change; hash: string }
);

export interface Plan {
  verdicts: Verdict[];
  /** The clients maintained by Formgate that must be written. `before` is the entry in the core configuration. */
  maintained: { before: unknown; after: ClientEntry }[];
  /** The owned clients to remove, because no resource describes them. */
  prune: string[];
  /** The owned clients that no resource describes, but that are kept, because their removal requires `allowPrune`. */
  held: string[];
  /**
   * The clients to record as owned before the writes. If the owned clients do not change, this is the object
   * `document.owned` itself.
   */
  owned: ReadonlyMap<string, string>;
}

export interface PlanOptions extends CoreClientRules {
  /**
   * The clients that Formgate itself maintains, such as builder-preview. A CoreClient resource with one of their ids is
   * rejected.
   */
  maintained: readonly ClientEntry[];
  allowPrune: boolean;
  now: Date;
}

export function planSync(resources: readonly CoreClientResource[], document: CoreDocument, options: PlanOptions): Plan {
  const verdicts = judge(resources, document, options);
  const wanted = new Set(verdicts.map(({ clientId }) => clientId));
  const { maintained } = options;
  const surplus = [...document.owned.keys()].filter((id) => !wanted.has(id) && !isMaintained(id, maintained));
  const isMuch = resources.length === 0 || surplus.length * 2 > document.owned.size;
  const isHeld = surplus.length > 0 && isMuch && !options.allowPrune;
  return {
    verdicts,
    maintained: planMaintained(document, maintained),
    prune: isHeld ? [] : surplus,
    held: isHeld ? surplus : [],
    owned: planOwned(verdicts, document, options),
  };
}

export function planMaintained({ clients }: CoreDocument, maintained: readonly ClientEntry[]): Plan['maintained'] {
  return maintained
    .map((after) => ({ before: clients.get(after.id), after }))
    .filter(({ before, after }) => hashEntry(before) !== hashEntry(after));
}

function isMaintained(id: string, maintained: readonly ClientEntry[]): boolean {
  return maintained.some((client) => client.id === id);
}

/**
 * Decides on each resource. For each client id, only the oldest resource can be accepted. This rule holds even while
 * the oldest resource is invalid, so that a newer resource cannot take over the client.
 */
function judge(resources: readonly CoreClientResource[], document: CoreDocument, options: PlanOptions): Verdict[] {
  const parse = createCoreClientParser(options);
  const winners = new Map<string, CoreClientResource>();
  return [...resources].sort(byAge).map((resource): Verdict => {
    const { clientId, entry, problems } = parse(resource);
    const winner = clientId === undefined ? undefined : winners.get(clientId);
    if (clientId !== undefined && !winner) winners.set(clientId, resource);
    const rejection = rejectId(clientId, winner, document, options.maintained);
    if (rejection) return { resource, clientId, rejection };
    if (problems)
      return { resource, clientId, rejection: { reason: 'Invalid', message: problems.slice(0, 10).join('; ') } };
    const hash = hashEntry(entry);
    return { resource, clientId, entry, hash, change: changeOf(document, resource, entry.id, hash) };
  });
}

function byAge(a: CoreClientResource, b: CoreClientResource): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

function rejectId(
  clientId: string | undefined,
  winner: CoreClientResource | undefined,
  document: CoreDocument,
  maintained: readonly ClientEntry[],
): Rejection | undefined {
  if (clientId === undefined) return undefined;
  if (isMaintained(clientId, maintained))
    return { reason: 'Reserved', message: `The platform itself manages the client ${clientId}.` };
  if (winner) return { reason: 'Duplicate', message: `The older resource ${winner.name} has the same client id.` };
  if (!document.owned.has(clientId) && (document.clients.has(clientId) || document.atTop.has(clientId)))
    return { reason: 'NotOwned', message: 'The core configuration has a client with this id that others manage.' };
  return undefined;
}

function changeOf(document: CoreDocument, resource: CoreClientResource, id: string, hash: string): Change {
  const { syncedHash, observedGeneration } = resource.status;
  const isThere = document.clients.has(id);
  const present = isThere ? hashEntry(document.clients.get(id)) : undefined;
  if (present === hash) return 'none';
  // If the resource was edited after its status was written, an earlier run may have written an entry that the status
  // does not show yet.
  const isLastWrite = syncedHash !== undefined && observedGeneration === resource.generation;
  // Others changed or removed the entry that was last written for this resource.
  if (isLastWrite && document.owned.has(id) && present !== syncedHash) return 'repaired';
  return isThere ? 'updated' : 'created';
}

/**
 * Determines the owned clients. A client stays owned until it is removed or becomes a client that Formgate maintains.
 */
function planOwned(verdicts: Verdict[], { owned }: CoreDocument, { maintained, now }: PlanOptions): Plan['owned'] {
  const after = new Map(owned);
  for (const { id } of maintained) after.delete(id);
  for (const { entry } of verdicts) if (entry && !after.has(entry.id)) after.set(entry.id, now.toISOString());
  const isSame = after.size === owned.size && [...after.keys()].every((id) => owned.has(id));
  return isSame ? owned : after;
}
