// Reads a tenant's clients and the core clients from the configuration service. A tenant cannot change or replace a
// core client. An invalid entry is omitted, logged and counted, and does not affect other entries.
import type { Configuration, Lookup } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-responses.ts';
import type { Tenant } from '../../service/auth/identity.ts';
import { clientEntries } from '../../service/clients/client-entries.ts';
import { clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import type { RedirectUriRules } from '../../service/clients/redirect-uri.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Urns } from '../../service/urn.ts';
import { type Client, createClientParser } from './client.ts';
import { ClientDocument } from './client-document.ts';
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
  const { configuration, urns, redirectUriRules, log, metrics } = options;
  const rules = { urnPrefix: urns.prefix, redirectUriRules };
  const parsers = {
    core: createClientParser({ ...rules, core: true }),
    tenant: createClientParser({ ...rules, core: false }),
  };
  const counts = createCatalogMetrics(metrics);
  // The platform's cache returns the same object for an unchanged document, so each document is parsed only once.
  const documents = new WeakMap<Revision, ClientDocument>();

  const latest = (place: { core: true } | { tenantId: string }, read: Lookup = permission) =>
    configuration.latest(clientsNamespace, clientsName, place, read);

  /**
   * Returns the configuration document of `place` if it is cached. Returns no promise, because a promise would slow
   * down every proxied request.
   */
  const peek = (place: { core: true } | { tenantId: string }) =>
    configuration.peekLatest(clientsNamespace, clientsName, place, permission);

  /**
   * Returns a configuration document. If the cached copy lacks the client, reads the document again, so that a new
   * client works immediately.
   */
  const latestWith = (clientId: string, tenantId?: string) =>
    latest(tenantId === undefined ? corePlace : { tenantId }, {
      ...permission,
      lacks: (revision) => !documentOf(revision, tenantId)?.has(clientId),
    });

  function documentOf(revision: Revision | undefined, tenantId: string | undefined): ClientDocument | undefined {
    if (!revision) return undefined;
    const known = documents.get(revision);
    if (known) return known;
    const place = tenantId === undefined ? 'core' : 'tenant';
    const document = new ClientDocument(clientEntries(revision.configuration), {
      place,
      tenantId,
      parse: parsers[place],
      log,
      counts,
    });
    documents.set(revision, document);
    return document;
  }

  return {
    async list(tenant) {
      const core = await documentOf(await latest(corePlace), undefined)?.all();
      const own = await documentOf(await latest({ tenantId: tenant.id }), tenant.id)?.all();
      const clients = [...new Map([...(own ?? []), ...(core ?? [])]).values()].filter((client) => client !== undefined);
      return clients.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async find(tenant, clientId) {
      const core = documentOf(peek(corePlace) ?? (await latest(corePlace)), undefined);
      // The ids of core clients are reserved: a tenant cannot use one, even if the core entry is invalid.
      if (core?.has(clientId)) return core.get(clientId);
      const known = documentOf(peek({ tenantId: tenant.id }), tenant.id);
      if (known?.has(clientId)) return known.get(clientId);
      const own = documentOf(await latestWith(clientId, tenant.id), tenant.id);
      if (own?.has(clientId)) return own.get(clientId);
      return documentOf(await latestWith(clientId), undefined)?.get(clientId);
    },
  };
}
