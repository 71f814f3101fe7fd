// Finds the URLs of services by their URNs. URNs must match exactly, with one exception: if a platform API has no
// entry, its URL is the URL of its service plus the API's well-known path.
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Clock } from '../service/clock.ts';
import type { Urns } from '../service/urn.ts';
import { type CacheTimes, createCache } from './cache.ts';
import { apiPaths, usableUrl, variableOf } from './directory-variables.ts';
import { type CallSettings, createPlatformClient } from './http-client.ts';
import type { MissBudget } from './miss-budget.ts';
import { PlatformError } from './platform-error.ts';
import { pathOf } from './url-path.ts';

export interface Directory {
  /**
   * Returns the URL, without trailing slash, of a service (`urn:example:<namespace>:<service>`), an API (`…:<version>`)
   * or a resource (`…:<version>:<path>`, which becomes the API's URL, one slash, and the path). Throws PlatformError
   * `failed` with reason `absent` if the directory has no entry. The reason is `unusable` if the URL of the entry is
   * not http(s), or contains credentials, a query or a fragment. Throws `rejected` if the text is not a URN with the
   * configured prefix. Pass the tenant that has chosen the URN, if any: its share of the miss budget is charged for
   * namespaces and entries that are not cached. Throws Problem `busy` if this share is used up.
   */
  resolve(urn: string, tenant?: string): Promise<string>;
}

export interface DirectoryOptions extends CallSettings {
  /** URL of the directory service, with or without `/directory/v2`. */
  url: string;
  urns: Pick<Urns, 'prefix'>;
  /**
   * URLs keyed by `DIR_<NAMESPACE>_<SERVICE>[_<API>]`. They take precedence over the entries. See `directoryOverrides`.
   */
  overrides?: Readonly<Record<string, string>> | undefined;
  clock: Clock;
  times: CacheTimes;
  budget: MissBudget;
}

/**
 * The parts of a URN that are needed to find its URL. They are cached, because proxied requests resolve the same few
 * URNs.
 */
interface Lookup {
  namespace: string;
  /** The URL that the operator has set for the service or API, if any. */
  own: string | undefined;
  serviceUrn: string;
  exact: string;
  apiPath: string | undefined;
  path: string;
}

const entrySchema = z.looseObject({ urn: z.string(), url: z.string() });
type Entries = ReadonlyMap<string, string>;
/** The cache contains this value instead of a URL that must not be called. */
const unusable = '';

export function createDirectory(options: DirectoryOptions): Directory {
  const { urns, overrides = {}, log } = options;
  const base = options.url.endsWith('/directory/v2') ? options.url : `${options.url}/directory/v2`;
  const client = createPlatformClient({ ...options, service: 'directory', baseUrl: () => Promise.resolve(base) });
  const cache = createCache<Entries>({ ...options, service: 'directory', maxEntries: 1_000 });
  const lookups = new LRUCache<string, Lookup>({ max: 5_000, memoMethod: lookupOf });

  async function load(namespace: string): Promise<Entries> {
    const items = await client.request<unknown[]>({
      operation: 'read directory',
      method: 'GET',
      path: `${pathOf('directory', 'namespaces', namespace)}/entries`,
      response: z.array(z.unknown()),
      isFixed: true,
      notFound: () => [],
    });
    const { entries, unusable: count } = readEntries(items);
    if (count > 0) log.warn({ dependency: 'directory', namespace, count }, 'unusable directory entries ignored');
    return entries;
  }

  function lookupOf(urn: string): Lookup {
    const [namespace, service, api, path] = elementsOf(urns.prefix, urn);
    const isPlatform = namespace === 'platform';
    const apiPath = isPlatform && api !== undefined ? apiPaths[`${service}:${api}`] : undefined;
    const variable = variableOf(namespace, service);
    const ownService = appended(apiPath === undefined ? undefined : overrides[variable], apiPath ?? '');
    const own = overrides[api === undefined ? variable : `${variable}_${variableOf(api)}`] ?? ownService;
    const serviceUrn = `${urns.prefix}:${namespace}:${service}`;
    const exact = api === undefined ? serviceUrn : `${serviceUrn}:${api}`;
    return { namespace, own, serviceUrn, exact, apiPath, path: path ? `/${path.replace(/^\/+/, '')}` : '' };
  }

  const find = (lookup: Lookup, tenant: string | undefined) => {
    const { namespace } = lookup;
    const pick = (entries: Entries) => urlIn(entries, lookup);
    return cache.find(namespace, () => load(namespace), pick, tenant);
  };

  return {
    async resolve(urn, tenant) {
      const lookup = lookups.memo(urn);
      const { namespace, own, path } = lookup;
      if (own !== undefined) return own + path;
      const known = cache.peek(namespace);
      const url = (known && urlIn(known, lookup)) ?? (await find(lookup, tenant));
      if (url === unusable) throw new PlatformError('directory', 'failed', { reason: 'unusable' });
      if (url !== undefined) return url + path;
      log.warn({ dependency: 'directory', urn }, 'no directory entry');
      throw new PlatformError('directory', 'failed', { reason: 'absent' });
    },
  };
}

function readEntries(items: unknown[]): { entries: Entries; unusable: number } {
  const entries = new Map<string, string>();
  let count = 0;
  for (const item of items) {
    const entry = entrySchema.safeParse(item);
    const url = entry.success ? usableUrl(entry.data.url) : undefined;
    // An invalid entry is only counted, so that the valid entries remain usable.
    if (!entry.success || url === undefined) count += 1;
    if (entry.success) entries.set(entry.data.urn, url ?? unusable);
  }
  return { entries, unusable: count };
}

function urlIn(entries: Entries, { exact, serviceUrn, apiPath }: Lookup): string | undefined {
  return entries.get(exact) ?? (apiPath === undefined ? undefined : appended(entries.get(serviceUrn), apiPath));
}

/** Returns the namespace, service, API and path of a URN. Throws PlatformError `rejected` if the URN is malformed. */
function elementsOf(prefix: string, urn: string): [string, string, string?, string?] {
  const elements = urn.startsWith(`${prefix}:`) ? urn.slice(prefix.length + 1).split(':') : [];
  if (elements.length < 2 || elements.length > 4 || elements.includes(''))
    throw new PlatformError('directory', 'rejected', { reason: 'not a service URN' });
  return elements as [string, string, string?, string?];
}

function appended(url: string | undefined, path: string): string | undefined {
  return url ? url + path : url;
}
