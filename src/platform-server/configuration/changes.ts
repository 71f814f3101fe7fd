// The writes of the configuration service: each is one transaction that locks the configuration's row, so that no
// update is lost, and that records the event of the change with it. An edit that changes nothing leaves no trace.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { type Queryable, withTransaction } from '../../service/postgres.ts';
import { type FieldError, invalidRequest, Problem } from '../../service/problem.ts';
import {
  applyEdit,
  type ConfigurationKey,
  coreScope,
  type Edit,
  EditError,
  isUnchanged,
  type Revision,
} from './configuration.ts';
import { type ConfigurationStore, createConfigurationStore } from './store.ts';
import type { Validate } from './validation.ts';

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
  validate: Validate;
  /** Schemas by `namespace:name` that no definition can override. */
  builtInSchemas: Record<string, unknown>;
  urnOf(namespace: string, name: string): string;
  /** What speaks against a value, beside its schema: a pointer into it, and why. `before` is what it replaces. */
  refuse(
    transaction: Queryable,
    key: ConfigurationKey,
    value: unknown,
    before: unknown,
  ): Promise<FieldError | undefined>;
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
  return {
    edit: (key, edit, actor) => change(key, actor, (under) => editLatest(under, edit)),
    createRevision: (key, actor) => change(key, actor, createNextRevision),
    setActive: (key, revision, actor) => change(key, actor, (under) => pinRevision(under, revision)),
    remove: (key, actor) => change(key, actor, removeAll),
  };
}

async function editLatest(change: Change, edit: Edit): Promise<Revision> {
  const { store, key, now, actor } = change;
  await store.lockOrCreate(key);
  const { latest } = await store.read(key);
  const configuration = await checkedValue(change, edited(latest?.configuration, edit), edit.operation);
  const refused = await change.options.refuse(change.transaction, key, configuration, latest?.configuration);
  if (refused) throw invalidValue(key, refused, edit.operation);
  if (latest && isUnchanged(latest.configuration, configuration)) return latest;
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

/** The value with its schema's defaults; a 400 where it does not fit. */
async function checkedValue(change: Change, value: unknown, operation: Edit['operation']): Promise<unknown> {
  const { options, store, key } = change;
  const label = `${key.namespace}:${key.name}`;
  const schema =
    options.builtInSchemas[label] ?? (await store.definition(key.scope, key.namespace, key.name))?.configurationSchema;
  if (schema === undefined) return value;
  const result = options.validate(schema, value);
  if (result.valid) return result.value;
  throw invalidValue(key, result, operation);
}

function invalidValue(key: ConfigurationKey, { pointer, detail }: FieldError, operation: Edit['operation']): Problem {
  const place = pointer ? `${pointer} ` : '';
  const errors = [{ pointer: `${operandPointers[operation]}${pointer}`, detail }];
  const label = `${key.namespace}:${key.name}`;
  return new Problem('invalid-request', `Value not valid for configuration '${label}': ${place}${detail}`, { errors });
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
