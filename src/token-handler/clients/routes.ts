// Routes to list, read, register and update clients. Responses contain neither secrets nor tokens.
import { z } from 'zod';
import { role } from '../../service/auth/bearer-guards.ts';
import type { RedirectUriRules } from '../../service/clients/redirect-uri.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import { createRequestQueue } from '../../service/limits/request-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { type ClientCatalog, requireClient } from './catalog.ts';
import type { Client } from './client.ts';
import type { LeftoverClients } from './leftover-clients.ts';
import type { ProvidedClients } from './provided-clients.ts';
import type { Registrar } from './registrar.ts';
import type { RegistrationSummary } from './registration.ts';
import type { RegistrationStore } from './registration-store.ts';
import {
  clientParams,
  clientResponse,
  createBodies,
  leftoversResponse,
  listQuery,
  listResponse,
  tenantQuery,
} from './schema.ts';

export interface ClientRouteOptions {
  /** Guard that requires a bearer token whose audience is the token handler. */
  bearer: Guard;
  tenant: Guard;
  catalog: ClientCatalog;
  registrations: Pick<RegistrationStore, 'summaries'>;
  leftovers: Pick<LeftoverClients, 'list'>;
  registrar: Registrar;
  provided: ProvidedClients;
  redirectUriRules: RedirectUriRules;
  metrics: Pick<Metrics, 'queueRefusals'>;
}

const refusals = {
  400: { description: 'The request is not valid' },
  401: { description: 'No valid bearer token for this service' },
  403: { description: 'The caller lacks the role token-handler-admin, or names another tenant' },
};
/** A change makes several calls to the identity provider, which the tenant may have chosen. */
const createChangeQueue = (name: string, { metrics }: Pick<ClientRouteOptions, 'metrics'>) =>
  createRequestQueue(name, metrics, {
    slots: { total: 20, perTenant: 4, perMember: 2 },
    waiting: { total: 200, perTenant: 20, perMember: 10 },
    detail: 'Other changes of clients of this tenant are still running. Try again.',
  });
const outages = {
  502: { description: 'The identity provider or the configuration service failed' },
  503: {
    description:
      'The database cannot be reached, too many changes of clients are running, or too much work of the tenant’s earlier registrations is outstanding',
  },
};
const unknownClient = { description: 'The tenant has no such client' };

export function listClientsRoute({ bearer, tenant, catalog, registrations }: ClientRouteOptions): Route {
  return route({
    method: 'get',
    path: '/token-handler/v1/clients',
    summary: "Lists the tenant's clients and the core clients, each with its registration",
    guards: [bearer, role('token-handler-admin'), tenant],
    query: listQuery,
    responses: { 200: { description: 'Clients by id', schema: listResponse }, ...refusals, ...outages },
    async handle({ query }, _request, response) {
      const tenant = tenantOf(response);
      const shown = (await catalog.list(tenant)).filter((client) => client.core || !query.core);
      const summaries = await registrations.summaries(
        tenant,
        shown.map(({ id }) => id),
      );
      response.json(shown.map((client) => present(client, summaries.get(client.id))));
    },
  });
}

export function readClientRoute({ bearer, tenant, catalog, registrations }: ClientRouteOptions): Route {
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId',
    summary: 'Reads a client of the tenant, or a core client, with its registration',
    guards: [bearer, role('token-handler-admin'), tenant],
    params: clientParams,
    query: tenantQuery,
    responses: {
      200: { description: 'The client, as in the list', schema: clientResponse },
      ...refusals,
      404: unknownClient,
      ...outages,
    },
    async handle({ params }, _request, response) {
      const tenant = tenantOf(response);
      const client = await requireClient(catalog, tenant, params.clientId);
      response.json(present(client, (await registrations.summaries(tenant, [client.id])).get(client.id)));
    },
  });
}

export function registerClientRoute(options: ClientRouteOptions): Route {
  const { bearer, tenant } = options;
  const changes = createChangeQueue('client-registrations', options);
  return route({
    method: 'post',
    path: '/token-handler/v1/clients/:clientId',
    audit: 'client.register',
    operationId: 'registerClient',
    summary:
      'Registers a client at the identity provider, or takes over one that exists there, replacing an earlier registration',
    guards: [bearer, role('token-handler-admin'), tenant],
    params: clientParams,
    query: tenantQuery,
    body: createBodies(options).register,
    responses: {
      200: { description: 'Registered', schema: z.object({ registered: z.literal(true) }) },
      ...refusals,
      404: unknownClient,
      409: { description: 'The tenant has registered as many clients as it may (conflict)' },
      ...outages,
    },
    async handle({ params, body }, _request, response) {
      const tenant = tenantOf(response);
      const client = await requireClient(options.catalog, tenant, params.clientId);
      const registration = { tenant, client, by: callerOf(response) };
      await changes.run({ tenant: tenant.id, member: client.id }, () =>
        body.clientSecret !== undefined
          ? options.provided.register({ ...body, ...registration })
          : options.registrar.register({ ...body, ...registration }),
      );
      response.json({ registered: true });
    },
  });
}

export function updateClientRoute(options: ClientRouteOptions): Route {
  const { bearer, tenant } = options;
  const changes = createChangeQueue('client-updates', options);
  return route({
    method: 'put',
    path: '/token-handler/v1/clients/:clientId',
    audit: 'client.update',
    operationId: 'updateClient',
    summary: 'Replaces the redirect URIs of the registered client; sessions stay valid',
    guards: [bearer, role('token-handler-admin'), tenant],
    params: clientParams,
    query: tenantQuery,
    body: createBodies(options).update,
    responses: {
      200: { description: 'Updated', schema: z.object({ updated: z.literal(true) }) },
      ...refusals,
      404: unknownClient,
      409: {
        description:
          'The client is not registered or must be registered again (registration-required), or an administrator provided it (conflict)',
      },
      ...outages,
    },
    async handle({ params, body }, _request, response) {
      const tenant = tenantOf(response);
      const client = await requireClient(options.catalog, tenant, params.clientId);
      const redirectUris = [...new Set(body.redirectUris)];
      await changes.run({ tenant: tenant.id, member: client.id }, () =>
        options.registrar.update({ tenant, client, redirectUris }),
      );
      response.json({ updated: true });
    },
  });
}

export function listLeftoversRoute({ bearer, tenant, leftovers }: ClientRouteOptions): Route {
  return route({
    method: 'get',
    path: '/token-handler/v1/clients/:clientId/leftovers',
    summary: 'Lists clients of earlier registrations that may be left at the identity provider, newest first',
    guards: [bearer, role('token-handler-admin'), tenant],
    params: clientParams,
    query: tenantQuery,
    responses: { 200: { description: 'At most 100 leftovers', schema: leftoversResponse }, ...refusals, ...outages },
    async handle({ params }, _request, response) {
      response.json(await leftovers.list(tenantOf(response).id, params.clientId));
    },
  });
}

function present(client: Client, registration: RegistrationSummary | undefined) {
  const { id, name, description, redirectUris, targets, keycloakLogout, core } = client;
  const shown = { id, name, description: description ?? null, redirectUris, targets, keycloakLogout, core };
  return { ...shown, registered: registration !== undefined, registration: registration ?? null };
}
