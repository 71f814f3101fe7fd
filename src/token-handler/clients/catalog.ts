// Reads the clients of a tenant from the configuration service: its own and those of core. A tenant cannot change or
// replace a client of core. An invalid entry is left out, logged and counted, and does not affect the others.
import prom from 'prom-client';
import type { Configuration } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-answers.ts';
import type { Tenant } from '../../service/auth/identity.ts';
import { clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import { isObject } from '../../service/json-value.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Urns } from '../../service/urn.ts';
import { type Client, type ParsedClient, parseClient } from './client.ts';

export interface ClientCatalog {
  /** Core clients and the tenant's own, by id. Throws PlatformError if the configuration service fails. */
  list(tenant: Tenant): Promise<Client[]>;
  /**
   * Undefined if the tenant has no such client. Reads are cached for at most 5 minutes, because targets grant
   * permission. Throws PlatformError.
   */
  find(tenant: Pick<Tenant, 'id'>, clientId: string): Promise<Client | undefined>;
}

export interface CatalogOptions {
  configuration: Pick<Configuration, 'latest'>;
  urns: Pick<Urns, 'prefix'>;
  allowInsecureRedirectUris: boolean;
  log: Logger;
  metrics: Metrics;
}

/** Entries of one document by id; undefined for an invalid entry. */
type Entries = ReadonlyMap<string, Client | undefined>;

const none: Entries = new Map();
const corePlace = { core: true } as const;
const permission = { permission: true } as const;

export function createClientCatalog(options: CatalogOptions): ClientCatalog {
  const { configuration } = options;
  const report = createReport(options);
  // The cache keeps the object of an unchanged document (platform/cache.ts), so each document is parsed once.
  const compiled = new WeakMap<Revision, Entries>();

  function entriesOf(revision: Revision | undefined, tenantId: string | undefined): Entries {
    if (!revision) return none;
    const known = compiled.get(revision);
    if (known) return known;
    const entries = readEntries(revision.configuration, { ...options, core: tenantId === undefined }, (id, parsed) =>
      report(tenantId, id, parsed),
    );
    compiled.set(revision, entries);
    return entries;
  }

  const read = (place: { core: true } | { tenantId: string }) =>
    configuration.latest(clientsNamespace, clientsName, place, permission);

  const coreEntries = async () => entriesOf(await read(corePlace), undefined);
  const ownEntries = async ({ id }: Pick<Tenant, 'id'>) => entriesOf(await read({ tenantId: id }), id);

  return {
    async list(tenant) {
      const [core, own] = await Promise.all([coreEntries(), ownEntries(tenant)]);
      const clients = [...new Map([...own, ...core]).values()].filter((client) => client !== undefined);
      return clients.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async find(tenant, clientId) {
      const core = entriesOf(await read(corePlace), undefined);
      // An id that core uses is core's, even if its entry there is invalid.
      if (core.has(clientId)) return core.get(clientId);
      return entriesOf(await read({ tenantId: tenant.id }), tenant.id).get(clientId);
    },
  };
}

type Rules = Pick<CatalogOptions, 'urns' | 'allowInsecureRedirectUris'> & { core: boolean };

/** Entries of the property `clients`, and entries at the top level whose ids are not in it. */
function readEntries(
  document: unknown,
  { urns, allowInsecureRedirectUris, core }: Rules,
  report: (id: string, parsed: ParsedClient) => void,
): Entries {
  const top = Object.entries(isObject(document) ? document : {});
  const grouped = top.find(([key]) => key === 'clients')?.[1];
  const raw = new Map<string, unknown>([
    ...top.filter(([key]) => key !== 'clients'),
    ...Object.entries(isObject(grouped) ? grouped : {}),
  ]);
  const entries = new Map<string, Client | undefined>();
  for (const [key, entry] of raw) {
    const parsed = parseClient(key, entry, { urnPrefix: urns.prefix, allowInsecureRedirectUris, core });
    entries.set(key, parsed.client);
    report(key, parsed);
  }
  return entries;
}

function createReport({ log, metrics }: CatalogOptions) {
  const counter = new prom.Counter({
    name: 'token_handler_invalid_clients_total',
    help: 'Clients left out because their configuration breaks a rule, counted once for each revision and replica',
    labelNames: ['place', 'field'],
    registers: [metrics.registry],
  });
  return (tenantId: string | undefined, id: string, { problems, unknownFields }: ParsedClient): void => {
    const place = tenantId === undefined ? 'core' : 'tenant';
    const where = { client: id.slice(0, 50), place, tenant: tenantId };
    if (!problems) {
      const fields = unknownFields.slice(0, 10).map((field) => field.slice(0, 50));
      if (fields.length > 0) log.warn({ ...where, fields }, 'client has unknown fields, which are ignored');
      return;
    }
    for (const field of new Set(problems.map((problem) => problem.field))) counter.inc({ place, field });
    const reasons = problems.slice(0, 10).map(({ field, detail }) => `${field}: ${detail}`);
    log.warn({ ...where, reasons }, 'a client is left out: it breaks a rule');
  };
}
