// Creates, patches and deletes registers in steps. Any step may fail, and the client may repeat the request. So a
// create adds the definition, which makes the register exist, in its last step, and a delete removes it first.
import { isDeepStrictEqual } from 'node:util';
import { invalidRequest, jsonPointer, Problem } from '../../service/http/problem.ts';
import { entryProblems, type Parts, type Register, type Revision, registerOf, toRegister } from './register.ts';
import type { HoldRegister, RegisterLock } from './register-lock.ts';
import type { CallContext, RegisterStore } from './store.ts';

export type RegisterChanges = ReturnType<typeof createRegisterChanges>;

type Call = Omit<CallContext, 'timeoutMs'>;
type Content = Pick<Register, 'description' | 'entries'>;

interface ChangeOptions {
  store: RegisterStore;
  hold: HoldRegister;
}

export function createRegisterChanges(options: ChangeOptions) {
  return { ...createDefinitionChanges(options), ...createEntryChanges(options) };
}

/**
 * Returns a function that runs `work` under a register's lock. `step` returns the context of the next call, or throws if
 * it is too late.
 */
function lockWith(hold: HoldRegister) {
  return <T>(name: string, call: Call, work: (lock: RegisterLock, step: () => CallContext) => Promise<T>): Promise<T> =>
    hold(call.tenantId, name, (lock) => work(lock, () => ({ ...call, timeoutMs: lock.timeForStep() })));
}

/** Returns a function that writes the entries and publishes them: a pin on an older revision moves to the new one. */
function publishTo(store: RegisterStore) {
  return async (name: string, entries: readonly unknown[], { active }: Parts, step: () => CallContext) => {
    const written = await store.writeEntries(name, entries, step());
    if (active && active.revision !== written.revision) await store.pin(name, written.revision, step());
    return Array.isArray(written.configuration) ? written.configuration : entries;
  };
}

function createDefinitionChanges({ store, hold }: ChangeOptions) {
  const [withLock, publish] = [lockWith(hold), publishTo(store)];
  return {
    /** Throws Problem `conflict` if the register exists. Completes an incomplete register. */
    create: (name: string, { description, entries }: Content, call: Call): Promise<Register> =>
      withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        if (registerOf(name, parts)) throw new Problem('conflict', 'A register with this name exists.');
        // Removes a leftover definition before writing the entries. Otherwise its anonymousRead could expose them, and
        // its schema would be applied to them.
        if (parts.definition) {
          await lock.lockDefinitions();
          await store.removeDefinition(name, step());
        }
        const written = await publish(name, entries, parts, step);
        await lock.lockDefinitions();
        await store.define(name, description, step());
        return toRegister(name, description, written);
      }),

    /** Leaves undefined members unchanged. Throws Problem `not-found`. */
    patch: (name: string, change: { [M in keyof Content]?: Content[M] | undefined }, call: Call): Promise<Register> =>
      withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        const register = registerOf(name, parts);
        if (!register) throw notFound();
        const { description = register.description } = change;
        const entries = change.entries ? await publish(name, change.entries, parts, step) : register.entries;
        if (change.description !== undefined) {
          await lock.lockDefinitions();
          await store.describe(name, change.description, step());
        }
        return toRegister(name, description, entries);
      }),

    /** Removes a register, complete or not. Throws Problem `not-found` if it was incomplete or missing. */
    remove: (name: string, call: Call): Promise<void> =>
      withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        if (parts.definition) {
          await lock.lockDefinitions();
          await store.removeDefinition(name, step());
        }
        if (parts.latest || parts.active) await store.removeEntries(name, step());
        if (!registerOf(name, parts)) throw notFound();
      }),
  };
}

function createEntryChanges({ store, hold }: ChangeOptions) {
  const [withLock, publish] = [lockWith(hold), publishTo(store)];
  return {
    /**
     * Replaces the entries by what `work` returns for the current ones; equal entries are not written. Throws what `work`
     * throws, Problem `not-found`, and `invalid-request` if the new entries are too many or too large.
     */
    edit: <T extends { entries: readonly unknown[] }>(
      name: string,
      call: Call,
      work: (entries: readonly unknown[]) => T,
    ): Promise<T> =>
      withLock(name, call, async (_lock, step) => {
        const parts = await store.read(name, step());
        const register = registerOf(name, parts);
        if (!register) throw notFound();
        const result = work(register.entries);
        requireValid(result.entries);
        if (!isDeepStrictEqual(result.entries, register.entries)) await publish(name, result.entries, parts, step);
        return result;
      }),

    /** Makes a copy of the latest revision, so that the next changes leave it unchanged. */
    keep: (name: string, call: Call): Promise<Revision> =>
      withLock(name, call, async (_lock, step) => {
        if (!registerOf(name, await store.read(name, step()))) throw notFound();
        return store.createRevision(name, step());
      }),

    /** Makes a revision the one that forms use. Throws Problem `not-found` if it is not a list of entries. */
    pin: (name: string, revision: number, call: Call): Promise<Revision> =>
      withLock(name, call, async (_lock, step) => {
        if (!registerOf(name, await store.read(name, step()))) throw notFound();
        const entries = await store.revision(name, revision, step());
        if (!entries) throw noRevision();
        return { revision: await store.pin(name, revision, step()), configuration: entries };
      }),
  };
}

/**
 * Throws Problem `invalid-request` if the entries may not be stored. The request has only some of them, so its pointers
 * begin within an entry.
 */
export function requireValid(entries: readonly unknown[]): void {
  const problems = entryProblems(entries).map(({ path: [, ...path], detail }) => ({
    pointer: jsonPointer(path),
    detail,
  }));
  if (problems.length > 0) throw invalidRequest(problems);
}

export function noRevision(): Problem {
  return new Problem('not-found', 'The register has no such revision.');
}

export function notFound(): Problem {
  return new Problem('not-found', 'There is no register with this name.');
}
