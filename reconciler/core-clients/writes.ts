// Carries a plan out at the configuration service, in an order that a crash between any two steps does not hurt: what is
// ours is recorded before it is written, and forgotten after it was removed. The first failure of the service ends it; a
// client that the service refuses harms no other.
import { PlatformError } from '../../src/platform/platform-error.ts';
import type { ClientEntry } from '../../src/service/client-rules.ts';
import type { Logger } from '../../src/service/log.ts';
import type { ClientDocument, CoreDocument } from './document.ts';
import type { Plan } from './plan.ts';
import type { SyncResult } from './status.ts';

export interface Written {
  /** By client id. A client that is missing here could not be written. */
  results: Map<string, SyncResult>;
  pruned: string[];
  failure: string | undefined;
}

export interface WriteOptions {
  store: ClientDocument;
  document: CoreDocument;
  assertTurn(): Promise<void>;
  log: Logger;
}

/** Bytes of one update: many services take no more than a megabyte. */
const updateLimit = 256 * 1_024;

/** Rejects with what `assertTurn` rejects with. */
export async function writePlan(plan: Plan, options: WriteOptions): Promise<Written> {
  const written: Written = { results: new Map(), pruned: [], failure: undefined };
  try {
    await writeInOrder(plan, options, written);
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    written.failure = `core clients cannot be written: ${error.message}`;
    options.log.error(
      { kind: error.kind, dependency: error.service, reason: error.reason },
      'core clients cannot be written',
    );
  }
  return written;
}

async function writeInOrder(plan: Plan, options: WriteOptions, written: Written): Promise<void> {
  const { store, document, assertTurn, log } = options;
  if (plan.reserved) await writeSome([plan.reserved.after], options, written);
  if (plan.claim !== document.owned) {
    await assertTurn();
    await store.record(plan.claim);
  }
  const entries = plan.verdicts.flatMap(({ change, entry }) => (entry && change !== 'none' ? [entry] : []));
  for (const some of inUpdates(entries)) await writeSome(some, options, written);
  if (plan.prune.length === 0) return;
  try {
    for (const id of plan.prune) {
      await assertTurn();
      // What is recorded and no longer there needs no removal.
      if (document.clients.has(id)) await store.remove(id);
      written.pruned.push(id);
      log.info({ client: id }, 'a core client was removed: no resource describes it any more');
    }
  } finally {
    if (written.pruned.length > 0) {
      await assertTurn();
      await store.record(new Map([...plan.claim].filter(([id]) => !written.pruned.includes(id))));
    }
  }
}

/** One update. Where the service refuses it, one for each client, so that only those fail that are refused. */
async function writeSome(entries: ClientEntry[], options: WriteOptions, written: Written): Promise<void> {
  const { store, assertTurn, log } = options;
  await assertTurn();
  try {
    const revision = await store.write(entries);
    for (const { id } of entries) written.results.set(id, { kind: 'synced', revision });
  } catch (error) {
    if (!(error instanceof PlatformError && error.kind === 'rejected')) throw error;
    if (entries.length > 1) {
      for (const entry of entries) await writeSome([entry], options, written);
      return;
    }
    for (const { id } of entries) written.results.set(id, { kind: 'refused' });
    log.warn({ client: entries[0]?.id }, 'the configuration service refuses a core client');
  }
}

function inUpdates(entries: ClientEntry[]): ClientEntry[][] {
  const updates: ClientEntry[][] = [];
  let room = 0;
  for (const entry of entries) {
    const size = Buffer.byteLength(JSON.stringify(entry));
    const last = updates.at(-1);
    if (last && size <= room) last.push(entry);
    else {
      updates.push([entry]);
      room = updateLimit;
    }
    room -= size;
  }
  return updates;
}
