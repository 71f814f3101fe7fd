// The writes of the configuration service: each is one transaction that locks the configuration's row, so that no
// update is lost, and that records the event of the change with it. An edit that changes nothing leaves no trace.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { type Queryable, withTransaction } from '../../service/postgres.ts';
import { invalidRequest, Problem } from '../../service/problem.ts';
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
  recordEvent: RecordEvent;
}

export type ConfigurationChanges = ReturnType<typeof createConfigurationChanges>;

export function createConfigurationChanges(options: ChangeOptions) {
  const { pool, clock } = options;

  async function record(
    transaction: Queryable,
    key: ConfigurationKey,
    name: ConfigurationEvent['name'],
    facts: Record<string, unknown>,
  ): Promise<void> {
    // Core configuration has no tenant that an event could belong to.
    if (key.scope === coreScope) return;
    await options.recordEvent(transaction, {
      tenant: key.scope,
      namespace: 'configuration-service',
      name,
      occurred: clock(),
      correlationId: `${key.namespace}:${key.name}`,
      context: { namespace: key.namespace, name: key.name },
      payload: { namespace: key.namespace, name: key.name, ...facts, urn: options.urnOf(key.namespace, key.name) },
    });
  }

  async function checked(
    store: ConfigurationStore,
    key: ConfigurationKey,
    value: unknown,
    operation: Edit['operation'],
  ): Promise<unknown> {
    const label = `${key.namespace}:${key.name}`;
    const schema =
      options.builtInSchemas[label] ??
      (await store.definition(key.scope, key.namespace, key.name))?.configurationSchema;
    if (schema === undefined) return value;
    const result = options.validate(schema, value);
    if (result.valid) return result.value;
    const place = result.pointer ? `${result.pointer} ` : '';
    const errors = [{ pointer: `${operandPointers[operation]}${result.pointer}`, detail: result.detail }];
    const detail = `Value not valid for configuration '${label}': ${place}${result.detail}`;
    throw new Problem('invalid-request', detail, { errors });
  }

  return {
    /** UPDATE, REPLACE or DELETE of a property, in place on the latest revision; revision 0 where there is none. */
    edit(key: ConfigurationKey, edit: Edit, actor: Actor): Promise<Revision> {
      return withTransaction(pool, async (transaction) => {
        const store = createConfigurationStore(transaction);
        await store.lockOrCreate(key);
        const { latest } = await store.read(key);
        const value = await checked(store, key, edited(latest?.configuration, edit), edit.operation);
        if (latest && isUnchanged(latest.configuration, value)) return latest;
        const now = clock();
        const saved = { revision: 0, created: now, ...latest, lastUpdated: now, configuration: value };
        await store.saveRevision(key, saved);
        await record(transaction, key, 'configuration-updated', {
          revision: saved.revision,
          lastUpdated: now,
          update: { operation: edit.operation, data: editData(edit) },
          updatedBy: actor,
        });
        return saved;
      });
    },

    /** Copies the latest revision to the next number. */
    createRevision(key: ConfigurationKey, actor: Actor): Promise<Revision> {
      return withTransaction(pool, async (transaction) => {
        const store = createConfigurationStore(transaction);
        await store.lockOrCreate(key);
        const { latest } = await store.read(key);
        const now = clock();
        const saved = {
          revision: latest ? latest.revision + 1 : 0,
          created: now,
          lastUpdated: now,
          configuration: latest ? latest.configuration : {},
        };
        await store.saveRevision(key, saved);
        await record(transaction, key, 'revision-created', {
          revision: saved.revision,
          created: now,
          createdBy: actor,
        });
        return saved;
      });
    },

    /** Pins a revision. One that does not exist is refused. */
    setActive(key: ConfigurationKey, revision: number, actor: Actor): Promise<void> {
      return withTransaction(pool, async (transaction) => {
        const store = createConfigurationStore(transaction);
        if (!(await store.lock(key)) || !(await store.revision(key, revision)))
          throw invalidRequest([{ pointer: '/revision', detail: 'is no revision of this configuration' }]);
        const from = (await store.read(key)).active?.revision;
        if (from === revision) return;
        await store.setActive(key, revision);
        await record(transaction, key, 'active-revision-set', { revision, from: from ?? null, setBy: actor });
      });
    },

    /** Removes all revisions and the pin; false when nothing existed. */
    remove(key: ConfigurationKey, actor: Actor): Promise<boolean> {
      return withTransaction(pool, async (transaction) => {
        const store = createConfigurationStore(transaction);
        if (!(await store.lock(key))) return false;
        await store.remove(key);
        await record(transaction, key, 'configuration-deleted', { deletedBy: actor });
        return true;
      });
    },
  };
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
