// Reads lists of sessions. The store's indexes also have entries of sessions that have ended. Reading a list removes
// such entries, and continues until the page is full. An empty page is therefore the end of the list.
import { forEachConcurrent } from '../../service/for-each-concurrent.ts';
import { Problem } from '../../service/http/problem.ts';
import type { FoundSession } from './session.ts';
import type { SessionIndex } from './store.ts';

export interface SessionListsOptions {
  index: SessionIndex;
  /** Returns undefined if the session does not exist, or could not be used and was therefore ended. */
  load(handle: string): Promise<FoundSession | undefined>;
  isAlive(found: FoundSession): boolean;
  /** Returns a time. If a session does not exist, its entry is removed, unless the entry expires after this time. */
  removedUntil(): number;
}

/** Pass this number as `top` to read all sessions of an index at once. */
export const allSessions = Number.MAX_SAFE_INTEGER;
/** Number of sessions that a list reads concurrently. */
const concurrent = 100;
/** Maximum number of entries that one call reads. It then returns the live sessions found so far. */
const mostEntries = 2_000;

export class SessionLists {
  readonly #options: SessionListsOptions;

  constructor(options: SessionListsOptions) {
    this.#options = options;
  }

  /**
   * Returns at most `top` live sessions, latest first. `after` is the last handle of the previous page. Returns
   * undefined if the index does not know the position of `after`. Throws Problem `unavailable` if the call has read
   * `mostEntries` entries and found no live session. A later call then reads further entries, because this call has
   * removed the entries of ended sessions.
   */
  async read(name: string, top: number): Promise<FoundSession[]>;
  async read(name: string, top: number, after: string | undefined): Promise<FoundSession[] | undefined>;
  async read(name: string, top: number, after?: string): Promise<FoundSession[] | undefined> {
    const size = Math.max(top, concurrent);
    const found: FoundSession[] = [];
    let last = after;
    for (let left = mostEntries; left > 0 && found.length < top; left -= size) {
      const handles = await this.#options.index.entries(name, size, last);
      if (!handles) return undefined;
      found.push(...(await this.#live(name, handles)));
      if (handles.length < size) return found.slice(0, top);
      last = handles.at(-1);
    }
    if (found.length === 0)
      throw new Problem('unavailable', 'Ended sessions are being removed from the list. Try again.', {
        headers: { 'Retry-After': '1' },
      });
    return found.slice(0, top);
  }

  /**
   * Returns all live sessions in pages of at most 100, latest first. The caller may end the sessions of a page before
   * it asks for the next one. An identity provider can put any number of sessions into an index, so no more than one
   * page is in memory.
   */
  async *pages(name: string): AsyncGenerator<FoundSession[], void> {
    for (let last: string | undefined; ; ) {
      const handles = await this.#options.index.entries(name, concurrent, last);
      if (!handles) throw new Problem('unavailable', 'The position in the list of sessions was lost. Try again.');
      const live = await this.#live(name, handles);
      if (live.length > 0) yield live;
      if (handles.length < concurrent) return;
      last = handles.at(-1);
    }
  }

  /** Returns the live sessions, and removes the entries of sessions that do not exist. */
  async #live(name: string, handles: string[]): Promise<FoundSession[]> {
    const { index, load, isAlive, removedUntil } = this.#options;
    const found = new Map<string, FoundSession>();
    await forEachConcurrent(handles, concurrent, async (handle) => {
      const one = await load(handle);
      if (one) found.set(handle, one);
      else await index.remove([name], handle, removedUntil());
    });
    const inOrder = handles.map((handle) => found.get(handle));
    return inOrder.filter((one) => one !== undefined).filter(isAlive);
  }
}
