// Builds one page of a tenant's registers, sorted by name, from registers that arrive in any order. It keeps only the
// registers of the page, so it needs little memory even if the tenant has many registers.
import { type Definition, type Register, sizeOf, toRegister } from './register.ts';

export interface PageOptions {
  /** The definitions of all registers, by name. A register without a definition does not exist. */
  definitions: ReadonlyMap<string, Definition>;
  /** The last name on the previous page. Undefined for the first page. */
  after: string | undefined;
  top: number;
  /** The page ends before its entries exceed this size in bytes of JSON. It always includes the first register. */
  maxBytes: number;
}

export interface RegisterPage {
  registers: Register[];
  /** The last name on this page, if more registers follow. */
  next: string | undefined;
}

export interface NamedEntries {
  name: string;
  /** Undefined if the register's entries are missing. */
  entries: readonly unknown[] | undefined;
}

interface Kept {
  name: string;
  entries: readonly unknown[];
  /** The size of the entries as JSON in bytes, computed on first use. */
  bytes?: number;
}

export function createRegisterPage({ definitions, after = '', top, maxBytes }: PageOptions) {
  let page: Kept[] = [];
  /**
   * The first name that did not fit on the page. The page must not contain a later name, because the next page would
   * then begin after that later name and omit this one.
   */
  let cutAt: string | undefined;

  return {
    /**
     * Adds registers to the page. A name may be added twice if registers change during the listing. A register that did
     * not fit never fits later, because the number of registers before it can only grow.
     */
    add(found: Iterable<NamedEntries>): void {
      const byName = new Map<string, Kept>();
      for (const { name, entries } of found)
        if (entries && name > after && (cutAt === undefined || name < cutAt) && definitions.has(name))
          byName.set(name, { name, entries });
      for (const one of page) byName.set(one.name, one);
      const sorted = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      let total = 0;
      const end = sorted.findIndex((one, index) => {
        one.bytes ??= sizeOf(one.entries);
        total += one.bytes;
        return index === top || (index > 0 && total > maxBytes);
      });
      if (end !== -1) cutAt = sorted[end]?.name;
      page = end === -1 ? sorted : sorted.slice(0, end);
    },

    size: () => page.length,

    /** True after a register did not fit. The page can then contain neither that register nor a later one. */
    isFull: () => cutAt !== undefined,

    result(): RegisterPage {
      const registers = page.map(({ name, entries }) =>
        toRegister(name, definitions.get(name)?.description ?? '', entries),
      );
      return { registers, next: cutAt === undefined ? undefined : page.at(-1)?.name };
    },
  };
}
