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
      summary: 'The tenants that the caller may see',
      guards: [bearerOrNamed(verifier, audience)],
      query: listQuery,
      answers: {
        200: { description: 'All that match; an anonymous caller gets no addresses', schema: listAnswer },
        400: { description: 'A filter is not valid' },
        401: { description: 'Neither a valid bearer nor a name or realm' },
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
      summary: 'One tenant, by the last segment of its URN',
      guards: [bearer(verifier, [audience])],
      params: idParams,
      answers: {
        200: { description: 'The tenant', schema: tenantAnswer },
        400: { description: 'The id has another shape' },
        401: { description: 'No valid bearer' },
        403: { description: "Another tenant's" },
        404: { description: 'No such tenant' },
      },
      async handle({ params }, _request, response) {
        const only = onlyVisibleTenant(response.locals.caller);
        if (only !== undefined && only !== params.id)
          throw new Problem('forbidden', 'The caller belongs to another tenant.');
        const [tenant] = await store.find({ id: params.id });
        if (!tenant) throw new Problem('not-found', 'There is no such tenant.');
        response.json(showTenant(urns, tenant, true));
      },
    }),
  ];
}
