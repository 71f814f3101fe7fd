// Defines the metrics of clients and their registrations. Each pod counts only the invalid configuration entries that
// it reads itself.
import prom from 'prom-client';
import { createScrapedGauges } from '../../service/operations/scraped-metrics.ts';

export interface CatalogMetrics {
  invalidClients: prom.Counter<'place' | 'field'>;
  invalidRedirectUris: prom.Counter<'place'>;
}

export function createCatalogMetrics({ registry }: { registry: prom.Registry }): CatalogMetrics {
  const registers = [registry];
  return {
    invalidClients: new prom.Counter({
      name: 'formgate_invalid_clients_total',
      help: 'Clients that are ignored because their configuration breaks a rule, by place of the configuration (core, tenant) and field; counted once for each revision and replica',
      labelNames: ['place', 'field'],
      registers,
    }),
    invalidRedirectUris: new prom.Counter({
      name: 'formgate_invalid_redirect_uris_total',
      help: 'Redirect URIs that are ignored because they break a rule, by place of the configuration (core, tenant); counted once for each revision and replica',
      labelNames: ['place'],
      registers,
    }),
  };
}

export function createRegistrationMetrics({ registry }: { registry: prom.Registry }) {
  return {
    registrations: new prom.Counter<'outcome'>({
      name: 'formgate_client_registrations_total',
      help: 'Requests to register a client by outcome: registered, refused (by the identity provider or a check), failed',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}

export interface LeftoverMetricsOptions {
  registry: prom.Registry;
  /** Returns the number of leftovers of each kind. A kind is absent if its number could not be read. */
  read(): Promise<Record<string, number>>;
}

export function createLeftoverMetrics({ registry, read }: LeftoverMetricsOptions): void {
  createScrapedGauges({
    registry,
    read,
    gauges: {
      formgate_registration_leftovers: {
        help: 'Leftovers of client registrations by kind: deletion (replaced clients that the token handler still has to delete at the identity provider), event (events still to be sent), client (clients that may remain at the identity provider and that an administrator has to delete)',
        labels: ['kind'],
        samples: (counts) => Object.entries(counts).map(([kind, value]) => ({ labels: { kind }, value })),
      },
    },
  });
}
