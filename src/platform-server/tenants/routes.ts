// Routes of the tenant service: the list of tenants, and one tenant by id. No route changes a tenant.
import { ifBearer } from '../../service/auth/bearer-guards.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Urns } from '../../service/urn.ts';
import { nameOrRealm, onlyVisibleTenant } from './policy.ts';
import { idParams, listQuery, listResponse, tenantResponse } from './schema.ts';
import type { TenantStore } from './store.ts';
import { showTenant } from './tenant.ts';

export interface TenantRouteOptions {
  bearer: Guard;
  store: TenantStore;
  urns: Urns;
}

export function tenantRoutes(options: TenantRouteOptions): Route[] {
  const { bearer, store, urns } = options;
  return [
    route({
      method: 'get',
      path: '/api/tenant/v2/tenants',
      summary: 'The tenants that the caller may see',
      guards: [ifBearer([bearer], [nameOrRealm])],
      query: listQuery,
      responses: {
        200: {
          description: 'All matching tenants. For a caller without a token, `adminEmail` is ignored and missing',
          schema: listResponse,
        },
        400: { description: 'A filter is invalid' },
        401: { description: 'No valid bearer, and no name or realm' },
      },
      async handle({ query }, _request, response) {
        const { caller } = response.locals;
        // A caller who does not get addresses cannot search for one either.
        const adminEmail = caller && query.adminEmail;
        const found = await store.find({ ...query, adminEmail, id: onlyVisibleTenant(caller) });
        const results = found.map((tenant) => showTenant(urns, tenant, caller !== undefined));
        response.json({ results, page: { size: results.length } });
      },
    }),
    route({
      method: 'get',
      path: '/api/tenant/v2/tenants/:id',
      summary: 'One tenant, by the last segment of its URN',
      guards: [bearer],
      params: idParams,
      responses: {
        200: { description: 'The tenant', schema: tenantResponse },
        400: { description: 'The id is malformed' },
        401: { description: 'No valid bearer' },
        403: { description: 'The caller belongs to another tenant' },
        404: { description: 'The tenant does not exist' },
      },
      async handle({ params }, _request, response) {
        const only = onlyVisibleTenant(response.locals.caller);
        if (only !== undefined && only !== params.id)
          throw new Problem('forbidden', 'The caller belongs to another tenant.');
        const [tenant] = await store.find({ id: params.id });
        if (!tenant) throw new Problem('not-found', 'The tenant does not exist.');
        response.json(showTenant(urns, tenant, true));
      },
    }),
  ];
}
