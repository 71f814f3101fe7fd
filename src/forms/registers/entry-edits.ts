// Replaces the entries of a register with the result of a function. Also keeps and pins revisions.
import { isDeepStrictEqual } from 'node:util';
import { invalidRequest, jsonPointer, Problem } from '../../service/http/problem.ts';
import { type Call, lockWith, notFound, publish, requireFit } from './changes.ts';
import { entriesOf, entryProblems, type Parts, type Revision, registerOf } from './register.ts';
import type { HoldRegister } from './register-lock.ts';
import type { RegisterStore } from './store.ts';

export type EntryEdits = ReturnType<typeof createEntryEdits>;

/** Returns the new entries, and further results. */
type Edit<T extends { entries: readonly unknown[] }> = (entries: readonly unknown[]) => T;

export function createEntryEdits({ store, hold }: { store: RegisterStore; hold: HoldRegister }) {
  const withLock = lockWith(hold);
  return {
    /**
     * Passes the current entries to `work`, and writes the entries that `work` returns. Writes nothing if both lists
     * are equal. Throws the errors of `work`, and Problem `not-found`. Throws `invalid-request` if the new entries
     * break a rule or are too many or too large, and `body-too-large` if only the body of the write would be too large.
     */
    edit: <T extends { entries: readonly unknown[] }>(name: string, call: Call, work: Edit<T>): Promise<T> =>
      withLock(name, call, async (_lock, step) => {
        const parts = await store.read(name, step());
        const result = edited(name, parts, work);
        if (!isDeepStrictEqual(result.entries, entriesOf(parts)))
          await publish(store, name, result.entries, parts, step);
        return result;
      }),

    /** Returns what `edit` would return, or throws the problems of `work` and of the limits. Writes nothing. */
    preview: async <T extends { entries: readonly unknown[] }>(name: string, call: Call, work: Edit<T>): Promise<T> =>
      edited(name, await store.read(name, call), work),

    /** Copies the latest revision. Later changes go to the copy, so the original stays as it is. */
    keep: (name: string, call: Call): Promise<Revision> =>
      withLock(name, call, async (_lock, step) => {
        if (!registerOf(name, await store.read(name, step()))) throw notFound();
        return store.createRevision(name, step());
      }),

    /** Pins a revision, so that forms use it. Throws Problem `not-found` if the revision is not a list of entries. */
    pin: (name: string, revision: number, call: Call): Promise<Revision> =>
      withLock(name, call, async (_lock, step) => {
        if (!registerOf(name, await store.read(name, step()))) throw notFound();
        const entries = await store.revision(name, revision, step());
        if (!entries) throw noRevision();
        return { revision: await store.pin(name, revision, step()), configuration: entries };
      }),
  };
}

/** Returns the result of `work`. Throws the problems that the description of `edit` names. */
function edited<T extends { entries: readonly unknown[] }>(name: string, parts: Parts, work: Edit<T>): T {
  const register = registerOf(name, parts);
  if (!register) throw notFound();
  const result = work(register.entries);
  requireValid(result.entries);
  requireFit(result.entries);
  return result;
}

/**
 * Throws Problem `invalid-request` if an entry breaks a rule. A request contains only some of the entries, so the
 * caller does not know an entry's index in the register. The pointers therefore omit the index.
 */
function requireValid(entries: readonly unknown[]): void {
  const problems = entryProblems(entries).map(({ path: [, ...path], detail }) => ({
    pointer: jsonPointer(path),
    detail,
  }));
  if (problems.length > 0) throw invalidRequest(problems);
}

export function noRevision(): Problem {
  return new Problem('not-found', 'The register has no such revision.');
}
