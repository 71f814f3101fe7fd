// Reads a tenant's clients and the core clients from the configuration service. A tenant cannot change or replace a
// core client. An invalid entry is omitted, logged and counted, and does not affect other entries.
import type { Configuration, Lookup } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-answers.ts';
import type { Tenant } from '../../service/auth/identity.ts';
import { clientEntries } from '../../service/clients/client-entries.ts';
import { clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import type { RedirectUriRules } from '../../service/clients/redirect-uri.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Urns } from '../../service/urn.ts';
import { type Client, type ParsedClient, parseClient } from './client.ts';
import { createCatalogMetrics } from './client-metrics.ts';

export interface ClientCatalog {
  /** Lists core and tenant clients, sorted by id. Throws PlatformError if the configuration service fails. */
  list(tenant: Tenant): Promise<Client[]>;
  /**
   * Returns undefined if the tenant has no client with this id. Configuration documents are cached for at most
   * 5 minutes, because the targets of a client grant permissions. Throws PlatformError.
   */
  find(tenant: Pick<Tenant, 'id'>, clientId: string): Promise<Client | undefined>;
}

export interface CatalogOptions {
  configuration: Pick<Configuration, 'latest' | 'peekLatest'>;
  urns: Pick<Urns, 'prefix'>;
  redirectUriRules: RedirectUriRules;
  log: Logger;
  metrics: Metrics;
}

/** The clients of one configuration document, keyed by id. An invalid entry has the value undefined. */
type Entries = ReadonlyMap<string, Client | undefined>;

const none: Entries = new Map();
const corePlace = { core: true } as const;
const permission = { permission: true } as const;

/** Returns the client. Throws Problem `not-found` if the tenant has no client with this id. */
export async function requireClient(
  catalog: Pick<ClientCatalog, 'find'>,
  tenant: Tenant,
  clientId: string,
): Promise<Client> {
  const client = await catalog.find(tenant, clientId);
  if (!client) throw new Problem('not-found', 'The tenant has no such client.');
  return client;
}

export function createClientCatalog(options: CatalogOptions): ClientCatalog {
  const { configuration, urns, redirectUriRules } = options;
  const report = createReport(options);
  // The platform's cache returns the same object for an unchanged document, so each document is parsed only once.
  const parsedDocuments = new WeakMap<Revision, Entries>();

  const latest = (place: { core: true } | { tenantId: string }, read: Lookup = permission) =>
    configuration.latest(clientsNamespace, clientsName, place, read);

  /**
   * Returns the configuration document of `place` if it is cached. The result is not a promise, because every proxied
   * request calls this function.
   */
  const peek = (place: { core: true } | { tenantId: string }) =>
    configuration.peekLatest(clientsNamespace, clientsName, place, permission);

  /** Returns a document. Reads it again if the cached copy lacks the client, so that a new client works immediately. */
  const latestWith = (clientId: string, tenantId?: string) =>
    latest(tenantId === undefined ? corePlace : { tenantId }, {
      ...permission,
      lacks: (revision) => !entriesOf(revision, tenantId).has(clientId),
    });

  function entriesOf(revision: Revision | undefined, tenantId: string | undefined): Entries {
    if (!revision) return none;
    const known = parsedDocuments.get(revision);
    if (known) return known;
    const entries = new Map<string, Client | undefined>();
    const rules = { urnPrefix: urns.prefix, redirectUriRules, core: tenantId === undefined };
    for (const [id, entry] of clientEntries(revision.configuration)) {
      const parsed = parseClient(id, entry, rules);
      entries.set(id, parsed.client);
      report(tenantId, id, parsed);
    }
    parsedDocuments.set(revision, entries);
    return entries;
  }

  return {
    async list(tenant) {
      const core = entriesOf(await latest(corePlace), undefined);
      const own = entriesOf(await latest({ tenantId: tenant.id }), tenant.id);
      const clients = [...new Map([...own, ...core]).values()].filter((client) => client !== undefined);
      return clients.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async find(tenant, clientId) {
      const core = entriesOf(peek(corePlace) ?? (await latest(corePlace)), undefined);
      // The ids of core clients are reserved: a tenant cannot use one, even if the core entry is invalid.
      if (core.has(clientId)) return core.get(clientId);
      const known = entriesOf(peek({ tenantId: tenant.id }), tenant.id);
      if (known.has(clientId)) return known.get(clientId);
      const own = entriesOf(await latestWith(clientId, tenant.id), tenant.id);
      if (own.has(clientId)) return own.get(clientId);
      return entriesOf(await latestWith(clientId), undefined).get(clientId);
    },
  };
}

function createReport({ log, metrics }: CatalogOptions) {
  const { invalidClients, invalidRedirectUris } = createCatalogMetrics(metrics);
  return (tenantId: string | undefined, id: string, { problems, unknownFields, leftOut }: ParsedClient): void => {
    const place = tenantId === undefined ? 'core' : 'tenant';
    const where = { client: id.slice(0, 50), place, tenant: tenantId };
    if (!problems) {
      const fields = unknownFields.slice(0, 10).map((field) => field.slice(0, 50));
      if (fields.length > 0) log.warn({ ...where, fields }, 'client has unknown fields, which are ignored');
      invalidRedirectUris.inc({ place }, leftOut.length);
      if (leftOut.length > 0) log.warn({ ...where, reasons: leftOut.slice(0, 10) }, 'invalid redirect URIs left out');
      return;
    }
    for (const field of new Set(problems.map((problem) => problem.field))) invalidClients.inc({ place, field });
    const reasons = problems.slice(0, 10).map(({ field, detail }) => `${field}: ${detail}`);
    log.warn({ ...where, reasons }, 'invalid client left out');
  };
}
