// The routes that list and read a tenant's form definitions, for callers who may not read configurations.
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf, sendShared, tenantOf } from '../../service/http/request-context.ts';
import { mayReadDefinition } from './definition.ts';
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
      'Sorted by name, without their schemas. A definition that was just written is listed within ten seconds, or later ' +
      'if reading all definitions takes longer.',
    guards: [bearer, mayManage, tenant],
    query: tenantQuery,
    responses: { 200: { description: 'The definitions', schema: definitionList }, ...refusals },
    async handle(_input, _request, response) {
      response.json(await list(tenantOf(response).id));
    },
  });
}

export function readDefinitionRoute({ bearer, tenant, find, isManager, textOf }: DefinitionRoutesOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/definitions/:definitionId',
    summary: 'Read a form definition as forms use it',
    description:
      'By form-admin and configuration-admin, with all its fields and their defaults. Callers with a role that the ' +
      'definition names, and intake applications if it permits anonymous applicants, get what they need to show the form. ' +
      'The data schema contains the shared schemas that it refers to. A change takes effect here within a minute.',
    guards: [bearer, tenant],
    params: definitionParams,
    query: tenantQuery,
    responses: {
      200: { description: 'The definition', schema: definitionResponse },
      403: { description: 'The caller has no role for this definition, or names another tenant' },
      404: { description: 'There is no such definition' },
      409: { description: 'The definition cannot be used: `errors` has pointers into it' },
      502: refusals[502],
      503: {
        description: 'Too many large definitions of this tenant are being read',
        headers: { 'Retry-After': 'Seconds' },
      },
    },
    async handle({ params: { definitionId } }, _request, response) {
      const caller = callerOf(response);
      const { id: tenantId } = tenantOf(response);
      const found = await find(tenantId, definitionId, { permission: true, isChosen: true });
      if (!found) throw new Problem('not-found', 'There is no such form definition.');
      // The intake application passes this response on to people without an account.
      const manages = isManager(caller) && !caller.roles.has('intake-application');
      if (!manages && !mayReadDefinition(caller.roles, found))
        throw new Problem('forbidden', 'The caller has no role for this form definition.');
      sendShared(response, 'application/json', textOf(tenantId, found, manages));
    },
  });
}
