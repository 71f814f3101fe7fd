// The tenant service's addresses: list and by id. It is read only.
import { bearer } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier } from '../../service/auth/identity.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Urns } from '../../service/urn.ts';
import { bearerOrNamed, onlyVisibleTenant } from './policy.ts';
import { idParams, listAnswer, listQuery, tenantAnswer } from './schema.ts';
import type { TenantStore } from './store.ts';
import { showTenant } from './tenant.ts';

export function tenantRoutes(options: { verifier: BearerVerifier; store: TenantStore; urns: Urns }): Route[] {
  const { verifier, store, urns } = options;
  const audience = urns.service('tenant-service');
  return [
    route({
      method: 'get',
      path: '/api/tenant/v2/tenants',
      summary: 'List the tenants that the caller may see',
      guards: [bearerOrNamed(verifier, audience)],
      query: listQuery,
      answers: {
        200: {
          description: 'All matching tenants; without addresses for a caller without a token',
          schema: listAnswer,
        },
        400: { description: 'A filter is invalid' },
        401: { description: 'No valid bearer, and no name or realm' },
      },
      async handle({ query }, _request, response) {
        const { caller } = response.locals;
        const found = await store.find({ ...query, id: onlyVisibleTenant(caller) });
        const results = found.map((tenant) => showTenant(urns, tenant, caller !== undefined));
        response.json({ results, page: { size: results.length } });
      },
    }),
    route({
      method: 'get',
      path: '/api/tenant/v2/tenants/:id',
      summary: 'Read a tenant by the last segment of its URN',
      guards: [bearer(verifier, [audience])],
      params: idParams,
      answers: {
        200: { description: 'The tenant', schema: tenantAnswer },
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
