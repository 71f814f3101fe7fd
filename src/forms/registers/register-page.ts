// Builds one page of a tenant's registers, sorted by name, from registers that arrive in any order. It keeps only the
// registers of the page, so it needs little memory even if the tenant has many registers.
import { type Register, sizeOf } from './register.ts';

export interface RegisterPage {
  registers: Register[];
  /** The last name on this page, if more registers follow. */
  next: string | undefined;
}

/**
 * The page has at most `top` registers, and ends before its entries exceed `maxBytes` bytes of JSON. It always includes
 * the first register.
 */
export function createRegisterPage({ top, maxBytes }: { top: number; maxBytes: number }) {
  const page: { register: Register; bytes: number }[] = [];
  /**
   * The first name that did not fit on the page. The page must not contain a later name, because the next page would
   * then begin after that later name and omit this one.
   */
  let cutAt: string | undefined;

  return {
    /**
     * Adds a register, unless it does not fit. A register that did not fit never fits later, because the number of
     * registers before it can only grow.
     */
    add(register: Register): void {
      if (cutAt !== undefined && register.name > cutAt) return;
      page.push({ register, bytes: sizeOf(register.entries) });
      page.sort((a, b) => (a.register.name < b.register.name ? -1 : 1));
      let total = 0;
      const end = page.findIndex(({ bytes }, index) => {
        total += bytes;
        return index === top || (index > 0 && total > maxBytes);
      });
      if (end !== -1) cutAt = page.splice(end)[0]?.register.name;
    },

    size: () => page.length,

    /** True after a register did not fit. The page can then contain neither that register nor a later one. */
    isFull: () => cutAt !== undefined,

    result: (): RegisterPage => ({
      registers: page.map(({ register }) => register),
      next: cutAt === undefined ? undefined : page.at(-1)?.register.name,
    }),
  };
}
