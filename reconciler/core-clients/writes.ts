// Applies a plan at the configuration service. The order of the steps tolerates a crash between any two of them: a
// client is recorded as owned before it is written, and stays recorded until it is removed. Stops at the first failure
// of the configuration service, but continues if the service rejects a single client.
import { PlatformError, serviceRefusal } from '../../src/platform/platform-error.ts';
import type { ClientEntry } from '../../src/service/clients/client-rules.ts';
import { auditLog, serviceEvent } from '../../src/service/operations/audit.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import { hashEntry } from './core-client.ts';
import type { ClientDocument, CoreDocument } from './document.ts';
import type { Plan } from './plan.ts';
import type { Refusals } from './refusals.ts';
import type { SyncResult } from './status.ts';

export interface Written {
  /** The result for each client id. A client without a result could not be written. */
  results: Map<string, SyncResult>;
  pruned: string[];
  failure: string | undefined;
}

export interface WriteOptions {
  store: ClientDocument;
  document: CoreDocument;
  refusals: Refusals;
  renewLease(): Promise<void>;
  log: Logger;
}

/** Maximum size of an update in bytes. It is small, because many services accept at most one megabyte. */
const updateLimit = 256 * 1_024;

/** Applies the plan. If `renewLease` rejects, rejects with the same reason. */
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
  const { store, document, renewLease } = options;
  const isKnown = (entry: ClientEntry) => options.refusals.isKnown(writeOf(entry));
  for (const { after } of plan.maintained) if (!isKnown(after)) await writeSome([after], options, written);
  if (plan.owned !== document.owned) {
    await renewLease();
    await store.record(plan.owned);
  }
  const entries = plan.verdicts.flatMap(({ change, entry }) => (entry && change !== 'none' ? [entry] : []));
  for (const { id } of entries.filter(isKnown)) written.results.set(id, { kind: 'refused' });
  const untried = entries.filter(({ id }) => !written.results.has(id));
  for (const some of inUpdates(untried)) await writeSome(some, options, written);
  if (plan.prune.length === 0) return;
  try {
    for (const id of plan.prune) {
      await renewLease();
      if (await prune(id, options)) written.pruned.push(id);
    }
  } finally {
    if (written.pruned.length > 0) {
      await renewLease();
      await store.record(new Map([...plan.owned].filter(([id]) => !written.pruned.includes(id))));
    }
  }
}

const writeOf = (entry: ClientEntry) =>
  ({ kind: 'core-client', subject: entry.id, version: hashEntry(entry) }) as const;

/** Removes a client. Returns false if the configuration service rejects the removal; the client then stays owned. */
async function prune(id: string, { store, document, refusals, log }: WriteOptions): Promise<boolean> {
  const what = { kind: 'core-client', subject: id, version: 'removal' } as const;
  // If a client is recorded but does not exist, there is nothing to remove.
  if (!document.clients.has(id)) return true;
  if (refusals.isKnown(what)) return false;
  try {
    await store.remove(id);
  } catch (error) {
    const cause = serviceRefusal(error);
    if (!cause) throw error;
    refusals.add({ ...what, detail: cause.detail });
    return false;
  }
  const audit = serviceEvent({ action: 'client.remove', by: 'reconciler', id });
  auditLog(log).info({ client: id, audit }, 'core client removed: it has no resource');
  return true;
}

/**
 * Writes the clients in one update. If the configuration service rejects the update, writes each client separately, so
 * that only the invalid clients fail.
 */
async function writeSome(entries: ClientEntry[], options: WriteOptions, written: Written): Promise<void> {
  const { store, renewLease, refusals, log } = options;
  await renewLease();
  try {
    const revision = await store.write(entries);
    for (const { id } of entries) {
      written.results.set(id, { kind: 'synced', revision });
      const audit = serviceEvent({ action: 'client.write', by: 'reconciler', id });
      auditLog(log).info({ client: id, audit }, 'core client written');
    }
  } catch (error) {
    const cause = serviceRefusal(error);
    if (!cause) throw error;
    if (entries.length > 1) {
      for (const entry of entries) await writeSome([entry], options, written);
      return;
    }
    for (const entry of entries) {
      written.results.set(entry.id, { kind: 'refused' });
      refusals.add({ ...writeOf(entry), detail: cause.detail });
    }
    log.warn({ client: entries[0]?.id }, 'configuration service refused a core client');
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
