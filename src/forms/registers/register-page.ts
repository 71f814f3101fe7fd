// One page of a tenant's registers, sorted by name, put together from parts that arrive in any order. It never holds
// more than the page: however many registers a tenant has, and however large they are, a list takes bounded memory.
import { type Definition, type Register, sizeOf, toRegister } from './register.ts';

export interface PageOptions {
  /** Of all registers, by name: only these exist. */
  definitions: ReadonlyMap<string, Definition>;
  /** Names up to this one were on earlier pages. */
  after: string | undefined;
  top: number;
  /** The page ends early once its entries take so many bytes of JSON; one register always fits. */
  maxBytes: number;
}

export interface RegisterPage {
  registers: Register[];
  /** The last name of this page when there is more. */
  next: string | undefined;
}

export interface NamedEntries {
  name: string;
  /** Undefined where a register's entries are missing. */
  entries: readonly unknown[] | undefined;
}

interface Kept {
  name: string;
  entries: readonly unknown[];
  bytes: number;
}

export function createRegisterPage(options: PageOptions) {
  const { definitions, after = '', top, maxBytes } = options;
  let kept: Kept[] = [];
  let isCut = false;

  /** Keeps the beginning of what is there; what falls off can never come back, as more names only push it further. */
  function trim(sorted: (Omit<Kept, 'bytes'> & { bytes?: number })[]): Kept[] {
    const page: Kept[] = [];
    let total = 0;
    for (const { name, entries, bytes = sizeOf(entries) } of sorted) {
      total += bytes;
      isCut = page.length === top || (page.length > 0 && total > maxBytes);
      if (isCut) break;
      page.push({ name, entries, bytes });
    }
    return page;
  }

  return {
    /** Names of a page of the configuration service may come twice while others write. */
    add(found: Iterable<NamedEntries>): void {
      const byName = new Map<string, Omit<Kept, 'bytes'> & { bytes?: number }>();
      for (const { name, entries } of found)
        if (entries && name > after && definitions.has(name)) byName.set(name, { name, entries });
      const wasCut = isCut;
      for (const one of kept) byName.set(one.name, one);
      kept = trim([...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)));
      isCut ||= wasCut;
    },
    /** True once no further name could be on the page, given that names come in order. */
    isFull: () => isCut,
    result(): RegisterPage {
      const registers = kept.map(({ name, entries }) =>
        toRegister(name, definitions.get(name)?.description ?? '', entries),
      );
      return { registers, next: isCut ? kept.at(-1)?.name : undefined };
    },
  };
}
