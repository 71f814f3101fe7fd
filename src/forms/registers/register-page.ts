// One page of a tenant's registers, sorted by name, from parts that arrive in any order. It keeps only the page, so a list
// takes bounded memory however many registers a tenant has.
import { type Definition, type Register, sizeOf, toRegister } from './register.ts';

export interface PageOptions {
  /** Of all registers, by name: only these exist. */
  definitions: ReadonlyMap<string, Definition>;
  /** Names up to this one were on earlier pages. */
  after: string | undefined;
  top: number;
  /** The page ends early once its entries take this many bytes of JSON; one register always fits. */
  maxBytes: number;
}

export interface RegisterPage {
  registers: Register[];
  /** The last name of this page if there are more registers. */
  next: string | undefined;
}

export interface NamedEntries {
  name: string;
  /** Undefined if a register's entries are missing. */
  entries: readonly unknown[] | undefined;
}

interface Kept {
  name: string;
  entries: readonly unknown[];
  /** Computed when it is needed. */
  bytes?: number;
}

export function createRegisterPage({ definitions, after = '', top, maxBytes }: PageOptions) {
  let page: Kept[] = [];
  let isCut = false;

  return {
    /** A name may come again while others write. What was cut off stays off: more names only push it further. */
    add(found: Iterable<NamedEntries>): void {
      const byName = new Map<string, Kept>();
      for (const { name, entries } of found)
        if (entries && name > after && definitions.has(name)) byName.set(name, { name, entries });
      for (const one of page) byName.set(one.name, one);
      const sorted = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      let total = 0;
      const end = sorted.findIndex((one, index) => {
        one.bytes ??= sizeOf(one.entries);
        total += one.bytes;
        return index === top || (index > 0 && total > maxBytes);
      });
      page = end === -1 ? sorted : sorted.slice(0, end);
      isCut ||= end !== -1;
    },

    /** True once no further name could be on the page, given that names come in order. */
    isFull: () => isCut,

    result(): RegisterPage {
      const registers = page.map(({ name, entries }) =>
        toRegister(name, definitions.get(name)?.description ?? '', entries),
      );
      return { registers, next: isCut ? page.at(-1)?.name : undefined };
    },
  };
}
