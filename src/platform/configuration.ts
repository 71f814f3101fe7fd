// Reads and writes configuration at the configuration service. Every call explicitly names a tenant or the platform's
// core as the owner, so that the two cannot be confused. Reads for editing bypass the cache. A write of this process
// removes the cached values. A read returns undefined if the configuration does not exist, and throws if the service
// fails.
import { z } from 'zod';
import type { Clock } from '../service/clock.ts';
import { mostJsonValues } from '../service/json-size.ts';
import type { Logger } from '../service/operations/log.ts';
import { type CacheTimes, createCache, type ReadOptions } from './cache.ts';
import {
  activeResponse,
  bothResponse,
  type ConfigurationEntry,
  deletedResponse,
  entryPage,
  latestResponse,
  type Page,
  type Revision,
  revisionPage,
  someRevision,
} from './configuration-responses.ts';
import { createDocumentBudget, type DocumentBudget } from './document-budget.ts';
import type { CallOptions, PlatformClient, PlatformRequest } from './http-client.ts';
import type { MissBudget } from './miss-budget.ts';
import type { PlatformMetrics } from './platform-metrics.ts';
import { pathOf, type Query } from './url-path.ts';

/** The owner of a configuration: a tenant (URN) or the platform's core. */
export type Owner = CallOptions & ({ tenantId: string; core?: never } | { core: true; tenantId?: never });

/** Options of a cached read. Fetches of unknown names are charged to the owner's share of the miss budget. */
export type Lookup = ReadOptions<Revision | undefined>;

export interface ListOptions {
  /** Number of entries on a page, from 1 to 1000. The service's default is 10. */
  top?: number | undefined;
  /** The cursor `next` of the previous page. */
  after?: string | undefined;
  includeActive?: boolean | undefined;
  /**
   * Conditions that listed configurations must meet: `nameContains`, `createDateAfter`, `createDateBefore` or `useOr`.
   * Any other key names a field of the configuration that must have the given value.
   */
  criteria?: Record<string, unknown> | undefined;
}

export interface Configuration {
  /**
   * Returns the latest and the active revision. Both are undefined if the configuration does not exist. Never cached.
   */
  read(
    namespace: string,
    name: string,
    owner: Owner,
  ): Promise<{ latest?: Revision | undefined; active?: Revision | undefined }>;
  /** Returns one page. Never cached. Requires the role configured-service for the service's own account. */
  list(namespace: string, options: Owner & ListOptions): Promise<Page<ConfigurationEntry>>;
  /** Returns the active revision, or the latest one if none is active. Cached. */
  activeOrLatest(namespace: string, name: string, owner: Owner, read?: Lookup): Promise<Revision | undefined>;
  /** Returns the latest revision. Cached. */
  latest(namespace: string, name: string, owner: Owner, read?: Lookup): Promise<Revision | undefined>;
  /**
   * Returns the latest revision if it is fresh in the cache, otherwise undefined. Makes no call. For frequent reads.
   */
  peekLatest(namespace: string, name: string, owner: Owner, read?: Pick<Lookup, 'permission'>): Revision | undefined;
  /**
   * Merges `update` into the latest revision by top-level key: objects are merged one level deep, and arrays of strings
   * are appended. The call is retried only if `idempotent` is true, that is, if repeating this update does no harm.
   */
  update(
    namespace: string,
    name: string,
    update: Record<string, unknown>,
    owner: Owner & { idempotent?: boolean },
  ): Promise<Revision>;
  /** Replaces the configuration of the latest revision. Creates revision 0 if the configuration does not exist. */
  replace(namespace: string, name: string, configuration: unknown, owner: Owner): Promise<Revision>;
  /**
   * Removes a key from the latest revision. `property` is the literal key or, if there is no such key, a dotted path.
   */
  deleteProperty(namespace: string, name: string, property: string, owner: Owner): Promise<Revision>;
  /** Returns one page of the revisions, newest first, with their configuration. Never cached. */
  revisions(
    namespace: string,
    name: string,
    options: Owner & Pick<ListOptions, 'top' | 'after'>,
  ): Promise<Page<Revision>>;
  /** Returns the configuration of a revision, or undefined if the revision does not exist. Never cached. */
  revision(namespace: string, name: string, revision: number, owner: Owner): Promise<unknown>;
  /** Copies the latest revision to a new one, and returns the new one. Later writes change only the new one. */
  createRevision(namespace: string, name: string, owner: Owner): Promise<Revision>;
  /** Pins a revision, and returns its number. Requires the role configuration-admin for the service's own account. */
  setActiveRevision(namespace: string, name: string, revision: number, owner: Owner): Promise<number>;
  /**
   * Removes a configuration with all revisions and its pin. Resolves to false if it did not exist. Requires the role
   * configuration-admin for the service's own account.
   */
  remove(namespace: string, name: string, owner: Owner): Promise<boolean>;
}

export interface ConfigurationOptions {
  /** A client whose base URL ends with `/configuration/v2`. */
  client: Pick<PlatformClient, 'request'>;
  clock: Clock;
  times: CacheTimes;
  budget: MissBudget;
  /** By default, the budget of a process that serves requests. */
  documents?: DocumentBudget | undefined;
  metrics: Pick<PlatformMetrics, 'staleServes' | 'cacheReads'>;
  log: Logger;
}

/** `copies` (1 by default): the response may have the JSON values of so many documents. Core has no such limit. */
type Operation<T> = Pick<PlatformRequest<T>, 'operation' | 'response'> &
  Partial<Pick<PlatformRequest<T>, 'method' | 'body' | 'idempotent' | 'notFound'>> & { query?: Query; copies?: number };

export function createConfiguration(options: ConfigurationOptions): Configuration {
  const { documents = createDocumentBudget(options.clock) } = options;
  const cacheOptions = { ...options, documents, service: 'configuration', maxEntries: 5_000 };
  const cache = createCache<Revision | undefined>(cacheOptions);

  async function call<T>(
    segments: string[],
    owner: Owner,
    { query, method = 'GET', copies = 1, ...rest }: Operation<T>,
  ): Promise<T> {
    return options.client.request({
      ...rest,
      method,
      path: pathOf('configuration', 'configuration', ...segments),
      query: { ...query, tenantId: owner.tenantId },
      timeoutMs: owner.timeoutMs,
      mostValues: owner.core ? undefined : copies * mostJsonValues,
    });
  }

  async function write<T>(namespace: string, name: string, owner: Owner, operation: Operation<T>): Promise<T> {
    try {
      return await call([namespace, name], owner, operation);
    } finally {
      // The cache is also invalidated after a failure, because the service may have written before it failed.
      cache.invalidate(cacheKey('active', namespace, name, owner));
      cache.invalidate(cacheKey('latest', namespace, name, owner));
    }
  }

  const readNow: Configuration['read'] = (namespace, name, owner) =>
    call([namespace, name], owner, { operation: 'read configuration', response: bothResponse, copies: 2 });
  // Reads that bypass the cache are charged too, because the main thread parses what they return.
  const charge = <T>({ tenantId }: Owner, load: () => Promise<T>) => documents.read(tenantId, load);

  return {
    read: (namespace, name, owner) => charge(owner, () => readNow(namespace, name, owner)),
    ...createLists((segments, owner, operation) => charge(owner, () => call(segments, owner, operation))),
    activeOrLatest: (namespace, name, owner, options) =>
      cache.get(
        cacheKey('active', namespace, name, owner),
        () =>
          call([namespace, name, 'active'], owner, {
            operation: 'read active configuration',
            query: { orLatest: true },
            response: someRevision,
            // The service's API description documents a 404 here, but the service returns an empty body.
            notFound: () => undefined,
          }),
        options,
        owner.tenantId,
      ),
    latest: (namespace, name, owner, options) =>
      cache.get(
        cacheKey('latest', namespace, name, owner),
        async () => (await readNow(namespace, name, owner)).latest,
        options,
        owner.tenantId,
      ),
    peekLatest: (namespace, name, owner, options) => cache.peek(cacheKey('latest', namespace, name, owner), options),
    ...createWrites(write),
  };
}

type Call = <T>(segments: string[], owner: Owner, operation: Operation<T>) => Promise<T>;

function createLists(call: Call) {
  return {
    list: (namespace, { top, after, includeActive, criteria, ...owner }) =>
      call([namespace], owner as Owner, {
        operation: 'list configuration',
        query: { top, after, includeActive, criteria: criteria && JSON.stringify(criteria) },
        response: entryPage,
        copies: 2,
      }),
    revisions: (namespace, name, { top, after, ...owner }) =>
      call([namespace, name, 'revisions'], owner as Owner, {
        operation: 'list configuration revisions',
        query: { top, after },
        response: revisionPage,
        copies: Number.POSITIVE_INFINITY,
      }),
    revision: (namespace, name, revision, owner) =>
      call([namespace, name, 'revisions', String(revision)], owner, {
        operation: 'read configuration revision',
        response: z.unknown(),
        notFound: () => undefined,
      }),
  } satisfies Partial<Configuration>;
}

const patch = (operation: string, body: object, idempotent = true): Operation<Revision> => {
  return { operation, method: 'PATCH', body, idempotent, response: latestResponse };
};

function createWrites(
  write: <T>(namespace: string, name: string, owner: Owner, operation: Operation<T>) => Promise<T>,
) {
  return {
    update: (namespace, name, update, { idempotent = false, ...owner }) =>
      write(
        namespace,
        name,
        owner as Owner,
        patch('update configuration', { operation: 'UPDATE', update }, idempotent),
      ),
    replace: (namespace, name, configuration, owner) =>
      write(namespace, name, owner, patch('replace configuration', { operation: 'REPLACE', configuration })),
    deleteProperty: (namespace, name, property, owner) =>
      write(namespace, name, owner, patch('delete configuration property', { operation: 'DELETE', property })),
    createRevision: (namespace, name, owner) =>
      write(namespace, name, owner, {
        operation: 'create configuration revision',
        method: 'POST',
        body: { operation: 'CREATE-REVISION' },
        response: latestResponse,
      }),
    setActiveRevision: (namespace, name, revision, owner) =>
      write(namespace, name, owner, {
        operation: 'pin configuration revision',
        method: 'POST',
        body: { operation: 'SET-ACTIVE-REVISION', revision },
        idempotent: true,
        response: activeResponse,
      }),
    remove: (namespace, name, owner) =>
      write(namespace, name, owner, { operation: 'delete configuration', method: 'DELETE', response: deletedResponse }),
  } satisfies Partial<Configuration>;
}

/** Returns a cache key. Its parts are separated by NUL, which cannot occur in a tenant id, namespace or name. */
function cacheKey(kind: 'active' | 'latest', namespace: string, name: string, { tenantId }: Owner): string {
  return `${kind}\0${tenantId ?? ''}\0${namespace}\0${name}`;
}
