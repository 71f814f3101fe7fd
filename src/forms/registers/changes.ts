// Creates, patches and deletes registers in steps. Any step may fail, and the client may repeat the request. A register
// without a definition does not exist. A create therefore adds the definition last, and a delete removes it first.
import { Problem } from '../../service/http/problem.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { fitsIntoBody, type Parts, type Register, registerOf, toRegister } from './register.ts';
import type { HoldRegister, RegisterLock } from './register-lock.ts';
import type { CallContext, RegisterStore } from './store.ts';

export type Call = Omit<CallContext, 'timeoutMs'>;
export type RegisterChanges = ReturnType<typeof createRegisterChanges>;

type Content = Pick<Register, 'description' | 'entries'>;

export function createRegisterChanges({ store, hold }: { store: RegisterStore; hold: HoldRegister }) {
  const withLock = lockWith(hold);
  return {
    /**
     * Creates a register. Throws Problem `conflict` if the register exists. If only parts of it exist, replaces these
     * parts and adds the missing parts.
     */
    create: async (name: string, { description, entries }: Content, call: Call): Promise<Register> => {
      requireFit(entries);
      return withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        if (registerOf(name, parts)) throw new Problem('conflict', 'A register with this name exists.');
        const complete = async () => {
          const written = await publish(store, name, entries, parts, step);
          await afterChange('the entries', async () => {
            await lock.lockDefinitions();
            await store.define(name, description, step());
          });
          return toRegister(name, description, written);
        };
        if (!parts.definition) return complete();
        // Removes the leftover definition before the entries are written. Otherwise, the definition's anonymousRead
        // could expose the entries, and its schema would apply to them.
        await lock.lockDefinitions();
        await store.removeDefinition(name, step());
        return afterChange('the removal of a left-over definition', complete);
      });
    },

    /** Changes a register. Keeps the members that are undefined in `change`. Throws Problem `not-found`. */
    patch: async (
      name: string,
      change: { [M in keyof Content]?: Content[M] | undefined },
      call: Call,
    ): Promise<Register> => {
      if (change.entries) requireFit(change.entries);
      return withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        const register = registerOf(name, parts);
        if (!register) throw notFound();
        const { description = register.description } = change;
        const entries = change.entries ? await publish(store, name, change.entries, parts, step) : register.entries;
        const describe = async () => {
          await lock.lockDefinitions();
          await store.describe(name, description, step());
        };
        if (change.description !== undefined)
          await (change.entries ? afterChange('the entries', describe) : describe());
        return toRegister(name, description, entries);
      });
    },

    /**
     * Removes a register, even if only parts of it exist. Throws Problem `not-found` if the register was incomplete
     * (its parts are removed nevertheless) or does not exist.
     */
    remove: (name: string, call: Call): Promise<void> =>
      withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        const removeEntries = async () => {
          if (parts.latest || parts.active) await store.removeEntries(name, step());
        };
        if (parts.definition) {
          await lock.lockDefinitions();
          await store.removeDefinition(name, step());
          await afterChange('the removal of the definition', removeEntries);
        } else await removeEntries();
        if (!registerOf(name, parts)) throw notFound();
      }),
  };
}

/**
 * Returns a function that runs `work` under a register's lock. `step` returns the context of the next call, or throws
 * if the time limit of the change has passed.
 */
export function lockWith(hold: HoldRegister) {
  return <T>(name: string, call: Call, work: (lock: RegisterLock, step: () => CallContext) => Promise<T>): Promise<T> =>
    hold(call.tenantId, name, (lock) => work(lock, () => ({ ...call, timeoutMs: lock.timeForStep() })));
}

/** Writes the entries and publishes them. If an older revision is pinned, the pin moves to the new revision. */
export async function publish(
  store: RegisterStore,
  name: string,
  entries: readonly unknown[],
  { active }: Parts,
  step: () => CallContext,
): Promise<readonly unknown[]> {
  const written = await store.writeEntries(name, entries, step());
  if (active && active.revision !== written.revision)
    await afterChange('the entries, but not as the active revision', () => store.pin(name, written.revision, step()));
  return Array.isArray(written.configuration) ? written.configuration : entries;
}

/**
 * Runs the steps that follow the first write of a change. If they fail, the problem says what was written. The status
 * of the problem is never 4xx, because 4xx would mean that nothing was written.
 */
async function afterChange<T>(written: string, steps: () => Promise<T>): Promise<T> {
  try {
    return await steps();
  } catch (error) {
    // The lock of the definitions is taken in Postgres.
    const problem = error instanceof Problem ? error : databaseProblem(error);
    if (!problem) throw error;
    const { status, slug, headers, members, detail } = problem;
    const earlier: unknown[] = Array.isArray(members.written) ? members.written : [];
    const advice = earlier.length > 0 ? '' : ' Only a part of the request was carried out: repeat it.';
    const options = { cause: error, headers, members: { ...members, written: [written, ...earlier] } };
    throw new Problem(status < 500 ? 'dependency-failed' : slug, detail + advice, options);
  }
}

export function requireFit(entries: readonly unknown[]): void {
  if (fitsIntoBody(entries)) return;
  throw new Problem('body-too-large', 'The entries, as the configuration service stores them, must be at most 1 MiB.');
}

export function notFound(): Problem {
  return new Problem('not-found', 'There is no register with this name.');
}
