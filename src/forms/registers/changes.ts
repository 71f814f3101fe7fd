// Creates, patches and deletes registers in steps. Any step may fail, and the client may repeat the request. So a
// create adds the definition, which makes the register exist, in its last step, and a delete removes it first.
import { Problem } from '../../service/http/problem.ts';
import { afterChange, type Call, lockWith, notFound, publish, requireFit } from './change-steps.ts';
import { createEntryEdits } from './entry-edits.ts';
import { type Register, registerOf, toRegister } from './register.ts';
import type { HoldRegister } from './register-lock.ts';
import type { RegisterStore } from './store.ts';

export type RegisterChanges = ReturnType<typeof createRegisterChanges>;

type Content = Pick<Register, 'description' | 'entries'>;

export function createRegisterChanges(options: { store: RegisterStore; hold: HoldRegister }) {
  return { ...createDefinitionChanges(options), ...createEntryEdits(options) };
}

function createDefinitionChanges({ store, hold }: { store: RegisterStore; hold: HoldRegister }) {
  const withLock = lockWith(hold);
  return {
    /** Throws Problem `conflict` if the register exists. Completes an incomplete register. */
    create: async (name: string, { description, entries }: Content, call: Call): Promise<Register> => {
      requireFit(entries);
      return withLock(name, call, async (lock, step) => {
        const parts = await store.read(name, step());
        if (registerOf(name, parts)) throw new Problem('conflict', 'A register with this name exists.');
        // Removes a leftover definition before writing the entries. Otherwise its anonymousRead could expose them, and
        // its schema would be applied to them.
        const complete = async () => {
          const written = await publish(store, name, entries, parts, step);
          await afterChange('the entries', async () => {
            await lock.lockDefinitions();
            await store.define(name, description, step());
          });
          return toRegister(name, description, written);
        };
        if (!parts.definition) return complete();
        await lock.lockDefinitions();
        await store.removeDefinition(name, step());
        return afterChange('the removal of a left-over definition', complete);
      });
    },

    /** Leaves undefined members unchanged. Throws Problem `not-found`. */
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

    /** Removes a register, complete or not. Throws Problem `not-found` if it was incomplete or missing. */
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
