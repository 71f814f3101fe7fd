// Creates an Event about clients that no resource describes and that a sync kept, because their removal requires
// `--allow-prune`.
import { createHash } from 'node:crypto';
import type { Clock } from '../../src/service/clock.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import { listed } from './checks.ts';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-calls.ts';
import { cutToBytes, eventNoteLimit } from './status.ts';

export interface HeldClientsOptions {
  cluster: Pick<Cluster, 'createEvent'>;
  clock: Clock;
  log: Logger;
  renewLease(): Promise<void>;
}

/** Maximum number of client ids in the note of the Event. */
const mostListed = 20;

/**
 * Creates an Event about the first of the clients, unless the API server still has the Event of an earlier run about
 * the same clients. By default, the API server keeps an Event for an hour. Clients that continue to be kept are
 * therefore reported once an hour. Returns the number of created Events, and the failure if there was one. An Event
 * that the API server refuses is logged, and is no failure of the run. Rejects if `renewLease` rejects.
 */
export async function reportHeld(
  held: readonly string[],
  { cluster, clock, log, renewLease }: HeldClientsOptions,
): Promise<{ events: number; failure?: string }> {
  const ids = [...held].sort();
  const [first] = ids;
  if (first === undefined) return { events: 0 };
  const note = `No resource describes these clients, but they are kept, because a run removes more than half of its clients only with --allow-prune: ${listed(ids, mostListed)}.`;
  const event = { type: 'Warning', reason: 'PruneHeld', note: cutToBytes(note, eventNoteLimit) } as const;
  await renewLease();
  try {
    const isNew = await cluster.createEvent({ name: resourceName(first) }, event, clock(), `held-${digest(ids)}`);
    return { events: isNew ? 1 : 0 };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    log.error({ kind: error.kind }, error.message);
    return { events: 0, ...(error.kind !== 'refused' && { failure: error.message }) };
  }
}

/**
 * Derives a resource name for the Event from the client id, because the resource does not exist. Unlike a client id,
 * the name of a resource must not contain spaces or capital letters.
 */
function resourceName(clientId: string): string {
  return (
    clientId
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '-')
      .replaceAll(/^-+|-+$/g, '') || 'client'
  );
}

function digest(ids: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(ids)).digest('hex').slice(0, 16);
}
