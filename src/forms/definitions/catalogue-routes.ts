// The routes that list and read the form definitions of a tenant, for people who manage forms but may not read
// configuration.
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import type { DefinitionRoutesOptions } from './routes.ts';
import { definitionList, definitionParams, definitionResponse, tenantQuery } from './schema.ts';

const refusals = {
  403: { description: 'The caller has neither form-admin nor configuration-admin, or names another tenant' },
  502: { description: 'The configuration service failed or denied access' },
  503: {
    description: 'Other requests of this tenant are still reading definitions',
    headers: { 'Retry-After': 'Seconds' },
  },
};

export function listDefinitionsRoute({ bearer, mayManage, tenant, list }: DefinitionRoutesOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/definitions',
    summary: 'List form definitions',
    description:
      'Sorted by name, without their schemas. A definition that was just written is listed within ten seconds.',
    guards: [bearer, mayManage, tenant],
    query: tenantQuery,
    answers: { 200: { description: 'The definitions', schema: definitionList }, ...refusals },
    async handle(_input, _request, response) {
      response.json(await list(tenantOf(response).id));
    },
  });
}

export function readDefinitionRoute({ bearer, mayManage, tenant, find }: DefinitionRoutesOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/definitions/:definitionId',
    summary: 'Read a form definition as forms use it',
    description: 'With the defaults of its fields. A change takes effect here within a minute.',
    guards: [bearer, mayManage, tenant],
    params: definitionParams,
    query: tenantQuery,
    answers: {
      200: { description: 'The definition', schema: definitionResponse },
      404: { description: 'There is no such definition' },
      409: { description: 'The definition cannot be used: `errors` has pointers into it' },
      ...refusals,
    },
    async handle({ params: { definitionId } }, _request, response) {
      const found = await find(tenantOf(response).id, definitionId, { permission: false, isChosen: true });
      if (!found) throw new Problem('not-found', 'There is no such form definition.');
      const { schemaKey: _key, schemaText: _text, ...definition } = found;
      response.json(definition);
    },
  });
}
