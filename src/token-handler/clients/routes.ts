// Routes to list, register and update clients. Responses hold neither secrets nor tokens.
import { role } from '../../service/auth/bearer-guards.ts';
import type { Tenant } from '../../service/auth/identity.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import type { ClientCatalog } from './catalog.ts';
import type { Client } from './client.ts';
import type { Registrar } from './registrar.ts';
import type { RegistrationStore, RegistrationSummary } from './registration-store.ts';
import {
  clientParams,
  createBodies,
  listAnswer,
  listQuery,
  registeredAnswer,
  tenantQuery,
  updatedAnswer,
} from './schema.ts';

export interface ClientRouteOptions {
  /** For tokens issued to this service. */
  bearer: Guard;
  tenant: Guard;
  catalog: ClientCatalog;
  registrations: Pick<RegistrationStore, 'summaries'>;
  registrar: Registrar;
  allowInsecureRedirectUris: boolean;
}

const refusals = {
  400: { description: 'The request is not valid' },
  401: { description: 'No valid bearer token for this service' },
  403: { description: 'The caller lacks the role token-handler-admin, or names another tenant' },
};
const outages = {
  502: { description: 'The identity provider or the configuration service failed' },
  503: { description: 'The database cannot be reached' },
};
const unknownClient = { description: 'The tenant has no such client' };

export function listClientsRoute({ bearer, tenant, catalog, registrations }: ClientRouteOptions): Route {
  return route({
    method: 'get',
    path: '/token-handler/v1/clients',
    summary: "Lists the tenant's clients, those of core included, with what is registered of each",
    guards: [bearer, role('token-handler-admin'), tenant],
    query: listQuery,
    answers: { 200: { description: 'Clients by id', schema: listAnswer }, ...refusals, ...outages },
    async handle({ query }, _request, response) {
      const caller = tenantOf(response);
      const [clients, summaries] = await Promise.all([catalog.list(caller), registrations.summaries(caller.id)]);
      const shown = clients.filter((client) => client.core || !query.core);
      response.json(shown.map((client) => present(client, summaries.get(client.id))));
    },
  });
}

export function registerClientRoute(options: ClientRouteOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'post',
    path: '/token-handler/v1/clients/:clientId',
    summary: 'Registers a client at the identity provider, replacing an earlier registration',
    guards: [bearer, role('token-handler-admin'), tenant],
    params: clientParams,
    query: tenantQuery,
    body: createBodies({ allowInsecure: options.allowInsecureRedirectUris }).register,
    answers: {
      200: { description: 'Registered', schema: registeredAnswer },
      ...refusals,
      404: unknownClient,
      ...outages,
    },
    async handle({ params, body }, _request, response) {
      const tenant = tenantOf(response);
      const client = await findClient(options.catalog, tenant, params.clientId);
      await options.registrar.register({
        ...body,
        authCallbackUrl: body.authCallbackUrl,
        tenant,
        client,
        by: callerOf(response),
      });
      response.json({ registered: true });
    },
  });
}

export function updateClientRoute(options: ClientRouteOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'put',
    path: '/token-handler/v1/clients/:clientId',
    summary: 'Replaces the redirect URIs of the registered client; sessions stay valid',
    guards: [bearer, role('token-handler-admin'), tenant],
    params: clientParams,
    query: tenantQuery,
    body: createBodies({ allowInsecure: options.allowInsecureRedirectUris }).update,
    answers: {
      200: { description: 'Updated', schema: updatedAnswer },
      ...refusals,
      404: unknownClient,
      409: { description: 'The client is not registered, or has to be registered again (registration-required)' },
      ...outages,
    },
    async handle({ params, body }, _request, response) {
      const tenant = tenantOf(response);
      const client = await findClient(options.catalog, tenant, params.clientId);
      await options.registrar.update({ tenant, client, redirectUris: [...new Set(body.redirectUris)] });
      response.json({ updated: true });
    },
  });
}

async function findClient(catalog: ClientCatalog, tenant: Tenant, clientId: string): Promise<Client> {
  const client = await catalog.find(tenant, clientId);
  if (!client) throw new Problem('not-found', 'The tenant has no such client.');
  return client;
}

function present(client: Client, registration: RegistrationSummary | undefined) {
  const { id, name, description, redirectUris, targets, keycloakLogout, core } = client;
  const registered = registration !== undefined;
  return {
    ...{ id, name, description: description ?? null, redirectUris, targets, keycloakLogout, core, registered },
    registration: registration ?? null,
  };
}
