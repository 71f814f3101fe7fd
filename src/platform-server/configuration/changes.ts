// The writes of the configuration service: each is one transaction that locks the configuration's row, so that no
// update is lost, and that records the event of the change with it. An edit that changes nothing leaves no trace.
// Values are validated before the transaction, because a tenant's schema must hold neither a lock nor a connection; an
// edit starts over if the value has changed by then.
import { isDeepStrictEqual } from 'node:util';
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { type FieldError, invalidRequest, Problem } from '../../service/http/problem.ts';
import { createFairQueue } from '../../service/limits/fair-queue.ts';
import { type Queryable, withTransaction } from '../../service/postgres/postgres.ts';
import type { TenantCode } from '../tenant-code.ts';
import { changedCode, type FindCode } from '../written-code.ts';
import { applyEdit, type ConfigurationKey, coreScope, type Edit, EditError, type Revision } from './configuration.ts';
import { type ConfigurationStore, createConfigurationStore } from './store.ts';

export interface Actor {
  id: string;
  name: string;
}

/** What a change tells the world. */
export interface ConfigurationEvent {
  tenant: string;
  namespace: 'configuration-service';
  name: 'configuration-updated' | 'revision-created' | 'active-revision-set' | 'configuration-deleted';
  occurred: Date;
  correlationId: string;
  context: Record<string, unknown>;
  payload: Record<string, unknown>;
}

/** Records an event in the transaction of what it tells of. */
export type RecordEvent = (transaction: Queryable, event: ConfigurationEvent) => Promise<void>;

export interface ChangeOptions {
  pool: pg.Pool;
  clock: Clock;
  code: Pick<TenantCode, 'validate' | 'check'>;
  /** By `namespace:name`: schemas that no definition can override, and how to find the code in such a value. */
  builtIn: Record<string, { schema: unknown; findCode: FindCode }>;
  /** Characters of a value's JSON text: edits of any number must not make it larger. */
  largest: number;
  urnOf(namespace: string, name: string): string;
  /** What speaks against a value, beside its schema: a pointer into it, and why. `before` is what it replaces. */
  refuse(key: ConfigurationKey, value: unknown, before: unknown): Promise<FieldError | undefined>;
  recordEvent: RecordEvent;
}

export interface ConfigurationChanges {
  /** UPDATE, REPLACE or DELETE of a property, in place on the latest revision; revision 0 where there is none. */
  edit(key: ConfigurationKey, edit: Edit, actor: Actor): Promise<Revision>;
  /** Copies the latest revision to the next number. */
  createRevision(key: ConfigurationKey, actor: Actor): Promise<Revision>;
  /** Pins a revision. One that does not exist is refused. */
  setActive(key: ConfigurationKey, revision: number, actor: Actor): Promise<void>;
  /** Removes all revisions and the pin; false when nothing existed. */
  remove(key: ConfigurationKey, actor: Actor): Promise<boolean>;
}

/** One change under way. */
interface Change {
  options: ChangeOptions;
  transaction: Queryable;
  store: ConfigurationStore;
  key: ConfigurationKey;
  actor: Actor;
  now: Date;
}

export function createConfigurationChanges(options: ChangeOptions): ConfigurationChanges {
  const change = <T>(key: ConfigurationKey, actor: Actor, work: (change: Change) => Promise<T>): Promise<T> =>
    withTransaction(options.pool, (transaction) =>
      work({ options, transaction, store: createConfigurationStore(transaction), key, actor, now: options.clock() }),
    );
  const edits = createFairQueue({
    slots: { total: 64, perTenant: 8, perMember: 1 },
    waiting: { total: 1_000, perTenant: 200, perMember: 100 },
    waitMs: 10_000,
    detail: 'Too many edits of this configuration are waiting. Try again.',
    retryAfterSeconds: 5,
  });
  const member = ({ namespace, name }: ConfigurationKey) => `${namespace}:${name}`;
  return {
    async edit(key, edit, actor) {
      // One at a time here, so that only other replicas can come in between.
      const release = await edits.take({ tenant: key.scope, member: member(key) });
      try {
        return await editLatest(options, key, edit, (work) => change(key, actor, work));
      } finally {
        release();
      }
    },
    createRevision: (key, actor) => change(key, actor, createNextRevision),
    setActive: (key, revision, actor) => change(key, actor, (under) => pinRevision(under, revision)),
    remove: (key, actor) => change(key, actor, removeAll),
  };
}

type InTransaction = <T>(work: (change: Change) => Promise<T>) => Promise<T>;

/** How often an edit starts over because another replica was faster. */
const attempts = 20;

async function editLatest(
  options: ChangeOptions,
  key: ConfigurationKey,
  edit: Edit,
  inTransaction: InTransaction,
): Promise<Revision> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { latest } = await createConfigurationStore(options.pool).read(key);
    const configuration = await checkedValue(options, key, latest?.configuration, edit);
    if (latest && isDeepStrictEqual(latest.configuration, configuration)) return latest;
    const saved = await inTransaction((change) => saveOver(change, latest, configuration, edit));
    if (saved) return saved;
  }
  throw new Problem('conflict', 'The configuration keeps changing.');
}

/** Undefined where the latest revision is no longer the one that the value was made of. */
async function saveOver(
  change: Change,
  seen: Revision | undefined,
  configuration: unknown,
  edit: Edit,
): Promise<Revision | undefined> {
  const { store, key, now, actor } = change;
  await store.lockOrCreate(key);
  const { latest } = await store.read(key);
  if (!isDeepStrictEqual(latest, seen)) return undefined;
  const saved = { revision: 0, created: now, ...latest, lastUpdated: now, configuration };
  await store.saveRevision(key, saved);
  await record(change, 'configuration-updated', {
    revision: saved.revision,
    lastUpdated: now,
    update: { operation: edit.operation, data: editData(edit) },
    updatedBy: actor,
  });
  return saved;
}

async function createNextRevision(change: Change): Promise<Revision> {
  const { store, key, now, actor } = change;
  await store.lockOrCreate(key);
  const { latest } = await store.read(key);
  const saved = {
    revision: latest ? latest.revision + 1 : 0,
    created: now,
    lastUpdated: now,
    configuration: latest ? latest.configuration : {},
  };
  await store.saveRevision(key, saved);
  await record(change, 'revision-created', { revision: saved.revision, created: now, createdBy: actor });
  return saved;
}

async function pinRevision(change: Change, revision: number): Promise<void> {
  const { store, key, actor } = change;
  if (!(await store.lock(key)) || !(await store.revision(key, revision)))
    throw invalidRequest([{ pointer: '/revision', detail: 'is no revision of this configuration' }]);
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

/** The event of a change. Core configuration has no tenant that an event could belong to. */
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

/** The value after the edit, with its schema's defaults. Throws a 400 where it does not fit, or holds unusable code. */
async function checkedValue(
  options: ChangeOptions,
  key: ConfigurationKey,
  before: unknown,
  edit: Edit,
): Promise<unknown> {
  const { code, builtIn, largest } = options;
  const label = `${key.namespace}:${key.name}`;
  const value = edited(before, edit);
  const refuse = (errors: FieldError[]) => invalidValue(label, edit, errors);
  if (JSON.stringify(value).length > largest) throw refuse([{ pointer: '', detail: 'becomes too large' }]);
  const own = builtIn[label];
  const store = createConfigurationStore(options.pool);
  const schema = own ? own.schema : (await store.definition(key.scope, key.namespace, key.name))?.configurationSchema;
  if (schema === undefined) return value;
  const result = await code.validate(key.scope, schema, value);
  if (!result.valid) throw refuse([{ pointer: result.pointer, detail: result.detail }]);
  const refused = await options.refuse(key, result.value, before);
  if (refused) throw refuse([refused]);
  const faults = own ? await code.check(key.scope, changedCode(own.findCode, before, result.value)) : [];
  if (faults.length > 0) throw refuse(faults);
  return result.value;
}

function invalidValue(label: string, { operation }: Edit, found: FieldError[]): Problem {
  const [first] = found;
  const place = first?.pointer ? `${first.pointer} ` : '';
  const errors = found.map(({ pointer, detail }) => ({ pointer: `${operandPointers[operation]}${pointer}`, detail }));
  const detail = `Value not valid for configuration '${label}': ${place}${first?.detail ?? ''}`;
  return new Problem('invalid-request', detail, { errors });
}

/** Where the operand of an edit stands in the body; what is wrong with the value stands below it, or was there before. */
const operandPointers = { UPDATE: '/update', REPLACE: '/configuration', DELETE: '' };

function edited(latest: unknown, edit: Edit): unknown {
  try {
    return applyEdit(latest, edit);
  } catch (error) {
    if (error instanceof EditError) throw invalidRequest([{ pointer: '/update', detail: error.message }]);
    throw error;
  }
}

function editData(edit: Edit): unknown {
  if (edit.operation === 'UPDATE') return edit.update;
  return edit.operation === 'REPLACE' ? edit.configuration : edit.property;
}
