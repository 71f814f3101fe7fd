// Creates, patches and deletes registers, step by step, in an order in which each can fail and the request can simply be
// repeated: what makes a register exist comes last when it is made, and goes first when it is removed.
import { Problem } from '../../service/http/problem.ts';
import { type Parts, type Register, registerOf, toRegister } from './register.ts';
import type { RegisterPlace, RegisterStore } from './store.ts';
import type { Turn, Turns } from './turns.ts';

export interface ChangeOptions {
  store: RegisterStore;
  turns: Turns;
}

export type RegisterChanges = ReturnType<typeof createRegisterChanges>;

type Call = Omit<RegisterPlace, 'timeoutMs'>;

export interface NewRegister {
  name: string;
  description: string;
  entries: readonly unknown[];
}

/** What is undefined stays as it is. */
export interface RegisterChange {
  description?: string | undefined;
  entries?: readonly unknown[] | undefined;
}

export function createRegisterChanges({ store, turns }: ChangeOptions) {
  /** One turn: each step asks for its place anew, and thereby whether it may still start. */
  function inTurn<T>(
    name: string,
    call: Call,
    work: (turn: Turn, place: () => RegisterPlace) => Promise<T>,
  ): Promise<T> {
    return turns.take(call.tenantId, name, (turn) => work(turn, () => ({ ...call, timeoutMs: turn.timeForStep() })));
  }

  /** Writing publishes: a pin on an older revision moves to what was written. */
  async function publish(name: string, entries: readonly unknown[], { active }: Parts, place: () => RegisterPlace) {
    const written = await store.writeEntries(name, entries, place());
    if (active && active.revision !== written.revision) await store.pin(name, written.revision, place());
    return Array.isArray(written.configuration) ? written.configuration : entries;
  }

  return {
    /** Throws Problem `conflict` where the register exists. Half a register does not: it is made whole. */
    create: ({ name, description, entries }: NewRegister, call: Call): Promise<Register> =>
      inTurn(name, call, async (turn, place) => {
        const parts = await store.read(name, place());
        if (registerOf(name, parts)) throw new Problem('conflict', 'A register with this name exists.');
        // A left-over definition goes before the entries come: not for a moment may its anonymousRead open them, nor its
        // schema judge them.
        if (parts.definition) {
          await turn.lockDefinitions();
          await store.removeDefinition(name, place());
        }
        const written = await publish(name, entries, parts, place);
        await turn.lockDefinitions();
        await store.define(name, description, place());
        return toRegister(name, description, written);
      }),

    /** Throws Problem `not-found`. */
    patch: (name: string, change: RegisterChange, call: Call): Promise<Register> =>
      inTurn(name, call, async (turn, place) => {
        const parts = await store.read(name, place());
        const register = registerOf(name, parts);
        if (!register) throw notFound();
        const { description = register.description } = change;
        const entries = change.entries ? await publish(name, change.entries, parts, place) : register.entries;
        if (change.description !== undefined) {
          await turn.lockDefinitions();
          await store.describe(name, change.description, place());
        }
        return toRegister(name, description, entries);
      }),

    /** Removes whatever is there. Throws Problem `not-found` where that was not a whole register. */
    remove: (name: string, call: Call): Promise<void> =>
      inTurn(name, call, async (turn, place) => {
        const parts = await store.read(name, place());
        if (parts.definition) {
          await turn.lockDefinitions();
          await store.removeDefinition(name, place());
        }
        if (parts.latest || parts.active) await store.removeEntries(name, place());
        if (!registerOf(name, parts)) throw notFound();
      }),
  };
}

export function notFound(): Problem {
  return new Problem('not-found', 'There is no register with this name.');
}
