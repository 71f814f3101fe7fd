// A page of a tenant's registers in as few calls as the contract allows: one for all definitions beside one for each
// 1,000 registers. Where those are too large for one answer, the registers of the page are read one by one instead.
import type { Configuration, Place } from '../../platform/configuration.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { definitionsIn, entriesOf, registerNamespace } from './register.ts';
import { createRegisterPage, type NamedEntries, type RegisterPage } from './register-page.ts';

/** The contract's largest page of a list. */
const largestPage = 1_000;
/** What the entries on a page may take, in bytes of JSON: answers stay small enough to hold in memory. */
const maxPageBytes = 8 * 1_048_576;
const readsAtOnce = 8;

export async function listRegisters(
  configuration: Configuration,
  readDefinitions: () => Promise<unknown>,
  place: Place & { tenantId: string },
  { top, after }: { top: number; after?: string | undefined },
): Promise<RegisterPage> {
  const listPage = (cursor?: string) =>
    configuration.list(registerNamespace, { ...place, top: largestPage, includeActive: true, after: cursor });
  const [document, first] = await Promise.all([readDefinitions(), listPage().catch(undefinedIfOversized)]);
  const definitions = definitionsIn(document);
  const page = createRegisterPage({ definitions, after, top, maxBytes: maxPageBytes });
  if (first) {
    for (let found: ListPage = first; ; found = await listPage(found.next)) {
      page.add(found.results.map((entry) => ({ name: entry.name, entries: entriesOf(entry) })));
      if (found.next === undefined || found.results.length === 0) return page.result();
    }
  }
  const readOne = async (name: string): Promise<NamedEntries> => {
    return { name, entries: entriesOf(await configuration.read(registerNamespace, name, place)) };
  };
  const names = [...definitions.keys()].filter((name) => after === undefined || name > after).sort();
  for (let start = 0; start < names.length && !page.isFull(); start += readsAtOnce)
    page.add(await Promise.all(names.slice(start, start + readsAtOnce).map(readOne)));
  return page.result();
}

type ListPage = Awaited<ReturnType<Configuration['list']>>;

function undefinedIfOversized(error: unknown): undefined {
  if (error instanceof PlatformError && error.reason === 'oversized') return undefined;
  throw error;
}
