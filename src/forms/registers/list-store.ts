// Reads a page of a tenant's registers in as few calls as the contract allows: one for all definitions, and one per
// 1,000 registers. If a response would be too large, it reads the registers one by one instead.
import { LRUCache } from 'lru-cache';
import type { Configuration, Owner } from '../../platform/configuration.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { definitionsIn, entriesOf, registerNamespace } from './register.ts';
import { createRegisterPage, type RegisterPage } from './register-page.ts';

/** The largest page that the contract allows. */
const largestPage = 1_000;
/** Largest size of the entries on a page, in bytes of JSON. Keeps a response small enough for memory. */
const maxPageBytes = 8 * 1_048_576;
const concurrentReads = 8;
/** Milliseconds for which a tenant's registers are read one by one after a response was too large. */
const rememberMs = 600_000;

export interface ListOptions {
  top: number;
  after?: string | undefined;
}

type TenantPlace = Owner & { tenantId: string };
type PageBuilder = ReturnType<typeof createRegisterPage>;

export function createRegisterList(
  configuration: Configuration,
  readDefinitions: (context: TenantPlace) => Promise<unknown>,
): (context: TenantPlace, options: ListOptions) => Promise<RegisterPage> {
  const tooLarge = new LRUCache<string, true>({ max: 1_000, ttl: rememberMs });

  function listMany(context: TenantPlace, after?: string) {
    return configuration.list(registerNamespace, { ...context, top: largestPage, includeActive: true, after });
  }

  /** Returns undefined if the registers are too large for one response. */
  async function listFirst(context: TenantPlace) {
    if (tooLarge.has(context.tenantId)) return undefined;
    try {
      return await listMany(context);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.reason !== 'oversized') throw error;
      tooLarge.set(context.tenantId, true);
      return undefined;
    }
  }

  async function addMany(page: PageBuilder, first: Awaited<ReturnType<typeof listMany>>, context: TenantPlace) {
    for (let found = first; ; found = await listMany(context, found.next)) {
      page.add(found.results.map((entry) => ({ name: entry.name, entries: entriesOf(entry) })));
      if (found.next === undefined || found.results.length === 0) return;
    }
  }

  async function addOneByOne(page: PageBuilder, names: string[], context: TenantPlace) {
    const readOne = async (name: string) => {
      return { name, entries: entriesOf(await configuration.read(registerNamespace, name, context)) };
    };
    for (let start = 0; start < names.length && !page.isFull(); start += concurrentReads)
      page.add(await Promise.all(names.slice(start, start + concurrentReads).map(readOne)));
  }

  return async (context, { top, after }) => {
    const [document, first] = await Promise.all([readDefinitions(context), listFirst(context)]);
    const definitions = definitionsIn(document);
    const page = createRegisterPage({ definitions, after, top, maxBytes: maxPageBytes });
    const names = () => [...definitions.keys()].filter((name) => after === undefined || name > after).sort();
    if (first) await addMany(page, first, context);
    else await addOneByOne(page, names(), context);
    return page.result();
  };
}
