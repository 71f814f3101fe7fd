// Reads a page of a tenant's registers: one call for all definitions, then one for the entries of each register of the
// page. The configuration service could list a whole namespace in one call, but it looks up the pins one after another,
// fails beyond 16 MiB, and orders only its first page.
import type { Configuration, Owner } from '../../platform/configuration.ts';
import { definitionsIn, entriesOf, registerNamespace } from './register.ts';
import { createRegisterPage, type RegisterPage } from './register-page.ts';

/** Largest size of the entries on a page, in bytes of JSON. Keeps a response small enough for memory. */
const maxPageBytes = 8 * 1_048_576;
/** Calls of one list that run at the same time. */
const concurrentReads = 16;

export interface ListOptions {
  top: number;
  after?: string | undefined;
}

type TenantPlace = Owner & { tenantId: string };

export function createRegisterList(
  configuration: Pick<Configuration, 'read'>,
  readDefinitions: (context: TenantPlace) => Promise<unknown>,
): (context: TenantPlace, options: ListOptions) => Promise<RegisterPage> {
  return async (context, { top, after }) => {
    const readOne = async (name: string) => {
      return { name, entries: entriesOf(await configuration.read(registerNamespace, name, context)) };
    };
    const definitions = definitionsIn(await readDefinitions(context));
    const page = createRegisterPage({ definitions, after, top, maxBytes: maxPageBytes });
    const names = [...definitions.keys()].filter((name) => after === undefined || name > after).sort();
    for (let start = 0; start < names.length && !page.isFull(); ) {
      // One more than is missing shows whether another page follows.
      const count = Math.min(concurrentReads, Math.max(1, top + 1 - page.size()));
      page.add(await Promise.all(names.slice(start, start + count).map(readOne)));
      start += count;
    }
    return page.result();
  };
}
