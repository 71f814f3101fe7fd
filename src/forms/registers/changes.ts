// Creates, patches and deletes registers in steps. Any step may fail, and the client may repeat the request. So a
// create adds the definition, which makes the register exist, in its last step, and a delete removes it first.
import { Problem } from '../../service/http/problem.ts';
import { type Parts, type Register, registerOf, toRegister } from './register.ts';
import type { HoldRegister, RegisterLock } from './register-lock.ts';
import type { CallContext, RegisterStore } from './store.ts';

export type RegisterChanges = ReturnType<typeof createRegisterChanges>;

type Call = Omit<CallContext, 'timeoutMs'>;
type Content = Pick<Register, 'description' | 'entries'>;

export function createRegisterChanges({ store, hold }: { store: RegisterStore; hold: HoldRegister }) {
  /**
   * Runs `work` under the register's lock. `step` returns the context of the next call, or throws if it is too late.
   */
  function withLock<T>(
    name: string,
    call: Call,
    work: (lock: RegisterLock, step: () => CallContext) => Promise<T>,
  ): Promise<T> {
    return hold(call.tenantId, name, (lock) => work(lock, () => ({ ...call, timeoutMs: lock.timeForStep() })));
  }

  /** Writes the entries and publishes them: a pin on an older revision moves to the new one. */
  async function publish(name: string, entries: readonly unknown[], { active }: Parts, step: () => CallContext) {
    const written = await store.writeEntries(name, entries, step());
    if (active && active.revision !== written.revision) await store.pin(name, written.revision, step());
    return Array.isArray(written.configuration) ? written.configuration : entries;
  }

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

export function notFound(): Problem {
  return new Problem('not-found', 'There is no register with this name.');
}
