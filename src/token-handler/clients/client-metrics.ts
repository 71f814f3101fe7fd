// Defines the metrics of clients and their registrations. Each pod counts only the invalid configuration entries that
// it reads itself.
import prom from 'prom-client';

export interface CatalogMetrics {
  invalidClients: prom.Counter<'place' | 'field'>;
  invalidRedirectUris: prom.Counter<'place'>;
}

export function createCatalogMetrics({ registry }: { registry: prom.Registry }): CatalogMetrics {
  const registers = [registry];
  return {
    invalidClients: new prom.Counter({
      name: 'formgate_invalid_clients_total',
      help: 'Clients left out because their configuration breaks a rule, counted once for each revision and replica',
      labelNames: ['place', 'field'],
      registers,
    }),
    invalidRedirectUris: new prom.Counter({
      name: 'formgate_invalid_redirect_uris_total',
      help: 'Redirect URIs of configured clients left out because they break a rule, counted once for each revision and replica',
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
  /** Returns the numbers of leftovers, keyed by kind. Kinds whose number could not be read are absent. */
  read(): Promise<Record<string, number>>;
}

export function createLeftoverMetrics({ registry, read }: LeftoverMetricsOptions): void {
  new prom.Gauge({
    name: 'formgate_registration_leftovers',
    help: 'Replaced clients to be deleted at the identity provider (deletion), events to be sent (event), and clients that may be left there and that an administrator has to delete (client)',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      const counts = await read();
      this.reset();
      for (const [kind, count] of Object.entries(counts)) this.set({ kind }, count);
    },
  });
}
