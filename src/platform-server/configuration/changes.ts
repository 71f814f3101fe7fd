// Writes configurations. Each write is one transaction that locks the configuration's row, so that no update is lost,
// and records the event of the change. An edit that changes nothing writes nothing. Values are validated before the
// transaction, because a slow schema of a tenant must not hold a lock or a connection. If the value changes during the
// validation, the edit starts again.
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { createRequestQueue } from '../../service/limits/request-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { type CheckOptions, checkedValue } from './checked-value.ts';
import { type ConfigurationKey, coreScope, type Edit, type Revision } from './configuration.ts';
import { type ConfigurationStore, createConfigurationStore } from './store.ts';

export interface Actor {
  id: string;
  name: string;
}

/** The event that reports a change of a configuration. */
export interface ConfigurationEvent {
  tenant: string;
  namespace: 'configuration-service';
  name: 'configuration-updated' | 'revision-created' | 'active-revision-set' | 'configuration-deleted';
  occurred: Date;
  correlationId: string;
  context: Record<string, unknown>;
  payload: Record<string, unknown>;
}

/** Records an event in the transaction of the change. */
export type RecordEvent = (transaction: Queryable, event: ConfigurationEvent) => Promise<void>;

export interface ChangeOptions extends CheckOptions {
  clock: Clock;
  metrics: Pick<Metrics, 'queueRefusals'>;
  /** Maximum size of all values of a tenant, in bytes as Postgres stores them. Core has no such limit. */
  largestTenant: number;
  urnOf(namespace: string, name: string): string;
  recordEvent: RecordEvent;
}

export interface ConfigurationChanges {
  /** Edits the latest revision in place. Creates revision 0 if the configuration does not exist. */
  edit(key: ConfigurationKey, edit: Edit, actor: Actor): Promise<Revision>;
  /** Copies the latest revision to a new revision, which gets the next number. */
  createRevision(key: ConfigurationKey, actor: Actor): Promise<Revision>;
  /** Sets the active revision. Throws if the revision does not exist. */
  setActive(key: ConfigurationKey, revision: number, actor: Actor): Promise<void>;
  /** Deletes the configuration with all revisions. Resolves to false if it did not exist. */
  remove(key: ConfigurationKey, actor: Actor): Promise<boolean>;
}

/** The transaction of one change, and the objects that its steps need. */
interface Change {
  options: ChangeOptions;
  transaction: Queryable;
  store: ConfigurationStore;
  key: ConfigurationKey;
  actor: Actor;
  now: Date;
}

/** Runs the work of one change in a transaction. */
export function inChange<T>(
  options: ChangeOptions,
  key: ConfigurationKey,
  actor: Actor,
  work: (change: Change) => Promise<T>,
): Promise<T> {
  return options.tenantPool.transaction(key.scope, (transaction) =>
    work({ options, transaction, store: createConfigurationStore(transaction), key, actor, now: options.clock() }),
  );
}

export function createConfigurationChanges(options: ChangeOptions): ConfigurationChanges {
  const changes = createRequestQueue('configuration-changes', options.metrics, {
    slots: { total: 64, perTenant: 8, perMember: 1 },
    waiting: { total: 1_000, perTenant: 200, perMember: 100 },
    detail: 'Too many changes of this configuration are waiting. Try again.',
  });
  // Each replica makes only one change of a configuration at a time, so only other replicas can cause a conflict.
  const inTurn = <T>({ scope, namespace, name }: ConfigurationKey, work: () => Promise<T>) =>
    changes.run({ tenant: scope, member: `${namespace}:${name}` }, work);
  const change = <T>(key: ConfigurationKey, actor: Actor, work: (change: Change) => Promise<T>): Promise<T> =>
    inTurn(key, () => inChange(options, key, actor, work));
  return {
    edit: (key, edit, actor) =>
      inTurn(key, () => editLatest(options, key, edit, (work) => inChange(options, key, actor, work))),
    createRevision: (key, actor) => change(key, actor, createNextRevision),
    setActive: (key, revision, actor) => change(key, actor, (inChange) => setActiveRevision(inChange, revision)),
    remove: (key, actor) => change(key, actor, removeAll),
  };
}

type InTransaction = <T>(work: (change: Change) => Promise<T>) => Promise<T>;

/** Maximum number of attempts for an edit that conflicts with edits of other replicas. */
const attempts = 20;

async function editLatest(
  options: ChangeOptions,
  key: ConfigurationKey,
  edit: Edit,
  inTransaction: InTransaction,
): Promise<Revision> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { latest } = await createConfigurationStore(options.tenantPool.of(key.scope)).read(key);
    const configuration = await checkedValue(options, key, latest?.configuration, edit);
    if (latest && isDeepStrictEqual(latest.configuration, configuration)) return latest;
    const saved = await inTransaction((change) => saveOver(change, latest, configuration, edit));
    if (saved) return saved;
  }
  throw new Problem('conflict', 'Concurrent edits keep changing the configuration. Try again.');
}

/** Saves the value. Returns undefined if the latest revision has changed since the value was computed from it. */
async function saveOver(
  change: Change,
  seen: Revision | undefined,
  configuration: unknown,
  edit: Edit,
): Promise<Revision | undefined> {
  const { store, key } = change;
  await store.lockOrCreate(key);
  const { latest } = await store.read(key);
  return isDeepStrictEqual(latest, seen) ? overwrite(change, latest, configuration, edit) : undefined;
}

/** Saves the value in the latest revision, even if that revision has changed since the caller read it as `latest`. */
export async function overwrite(
  change: Change,
  latest: Revision | undefined,
  configuration: unknown,
  edit: Edit,
): Promise<Revision> {
  const { store, key, now, actor } = change;
  await store.lockOrCreate(key);
  const saved = { revision: 0, created: now, ...latest, lastUpdated: now, configuration };
  await saveWithRoom(change, saved);
  await record(change, 'configuration-updated', {
    revision: saved.revision,
    lastUpdated: now,
    update: { operation: edit.operation, data: editData(edit) },
    updatedBy: actor,
  });
  return saved;
}

/** Maximum number of revisions of a configuration. They are numbered without gaps, beginning with 0. */
const mostRevisions = 5_000;

async function createNextRevision(change: Change): Promise<Revision> {
  const { store, key, now, actor } = change;
  await store.lockOrCreate(key);
  const { latest } = await store.read(key);
  if (latest && latest.revision + 1 >= mostRevisions)
    throw new Problem(
      'conflict',
      `The configuration has ${mostRevisions} revisions, and cannot have more. The latest one can still be changed.`,
    );
  const saved = {
    revision: latest ? latest.revision + 1 : 0,
    created: now,
    lastUpdated: now,
    configuration: latest ? latest.configuration : {},
  };
  await saveWithRoom(change, saved);
  await record(change, 'revision-created', { revision: saved.revision, created: now, createdBy: actor });
  return saved;
}

/**
 * Saves the revision. Throws 409, which rolls back the transaction, if the tenant's values now exceed their limit and
 * this revision has grown: a tenant at its limit can still make its values smaller. Compares the sizes as Postgres
 * stores them, because a text of the same length may compress less.
 */
async function saveWithRoom({ options, store, key }: Change, revision: Revision): Promise<void> {
  if (key.scope === coreScope) return store.saveRevision(key, revision);
  const before = await store.storedBytesOf(key, revision.revision);
  await store.saveRevision(key, revision);
  if ((await store.storedBytes(key.scope)) <= options.largestTenant) return;
  if ((await store.storedBytesOf(key, revision.revision)) <= before) return;
  throw new Problem(
    'conflict',
    `The configuration of the tenant would be larger than ${options.largestTenant} bytes. Delete configurations that are no longer needed.`,
  );
}

async function setActiveRevision(change: Change, revision: number): Promise<void> {
  const { store, key, actor } = change;
  if (!(await store.lock(key)) || !(await store.revision(key, revision)))
    throw invalidRequest([{ pointer: '/revision', detail: 'does not exist in this configuration' }]);
  const from = (await store.read(key)).active?.revision;
  if (from === revision) return;
  await store.setActive(key, revision);
  await record(change, 'active-revision-set', { revision, from: from ?? null, setBy: actor });
}

async function removeAll(change: Change): Promise<boolean> {
  const { store, key, actor } = change;
  if (!(await store.lock(key))) return false;
  await store.remove(key);
  await record(change, 'configuration-deleted', { deletedBy: actor });
  return true;
}

/** Records the event of a change. Core configuration has no events, because each event belongs to a tenant. */
async function record(change: Change, name: ConfigurationEvent['name'], facts: Record<string, unknown>): Promise<void> {
  const { options, transaction, key, now } = change;
  if (key.scope === coreScope) return;
  await options.recordEvent(transaction, {
    tenant: key.scope,
    namespace: 'configuration-service',
    name,
    occurred: now,
    correlationId: `${key.namespace}:${key.name}`,
    context: { namespace: key.namespace, name: key.name },
    payload: { namespace: key.namespace, name: key.name, ...facts, urn: options.urnOf(key.namespace, key.name) },
  });
}

function editData(edit: Edit): unknown {
  if (edit.operation === 'UPDATE') return edit.update;
  return edit.operation === 'REPLACE' ? edit.configuration : edit.property;
}
