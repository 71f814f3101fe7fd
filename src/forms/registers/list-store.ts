// Reads a page of a tenant's registers: one call for all definitions, then one for the entries of each register of the
// page. A single call could list the whole namespace. It is not used, because the configuration service then looks up
// the pins one after another, fails beyond 16 MiB, and sorts only the first page.
import type { Configuration, Owner } from '../../platform/configuration.ts';
import { definitionsIn, entriesOf, registerNamespace, toRegister } from './register.ts';
import { createRegisterPage, type RegisterPage } from './register-page.ts';

/** Maximum size of the entries on a page, in bytes of JSON. It limits the memory that a response needs. */
const maxPageBytes = 8 * 1_048_576;
/** Maximum number of concurrent calls for one page. */
const concurrentReads = 16;

export interface ListOptions {
  top: number;
  after?: string | undefined;
}

/** Waits for a read, and throws if the reads of the list together take too long. */
type WaitForRead = <T>(read: Promise<T>) => Promise<T>;

type TenantPlace = Owner & { tenantId: string };

export function createRegisterList(
  configuration: Pick<Configuration, 'read'>,
  readDefinitions: (context: TenantPlace) => Promise<unknown>,
): (context: TenantPlace, options: ListOptions, wait: WaitForRead) => Promise<RegisterPage> {
  return async (context, { top, after }, wait) => {
    const definitions = definitionsIn(await wait(readDefinitions(context)));
    const names = [...definitions.keys()].filter((name) => after === undefined || name > after).sort();
    const page = createRegisterPage({ top, maxBytes: maxPageBytes });
    const readOne = async (name: string) => {
      const entries = entriesOf(await wait(configuration.read(registerNamespace, name, context)));
      if (entries) page.add(toRegister(name, definitions.get(name)?.description ?? '', entries));
    };
    let [started, running] = [0, 0];
    // Reads one register more than the page needs, to find out whether another page follows. A slow read does not delay
    // the other reads.
    const isMissing = () => started < names.length && !page.isFull() && page.size() + running <= top;
    const readSome = async () => {
      while (isMissing()) {
        const name = names[started] ?? '';
        started += 1;
        running += 1;
        try {
          await readOne(name);
        } finally {
          running -= 1;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrentReads, top + 1) }, readSome));
    return page.result();
  };
}
