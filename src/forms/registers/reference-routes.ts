// Routes that list where form definitions refer to registers, and which of these references are dead.
import { type Route, route } from '../../service/http/http-app.ts';
import type { RegisterRoutesOptions } from './register-routes-options.ts';
import { nameParams, path, referencesResponse, refusals, tenantQuery } from './schema.ts';
import { callContextOf } from './store.ts';

const busy = {
  description: 'Other searches of the tenant are still running',
  headers: { 'Retry-After': 'Seconds' },
};

export function referenceRoutes({ bearer, mayManage, tenant, references }: RegisterRoutesOptions): Route[] {
  return [
    route({
      method: 'get',
      path: `${path}/:name/references`,
      summary: 'List the form definitions that use a register',
      description: 'Finds the URN of the register in their UI schemas, whether the register exists or not.',
      guards: [bearer, mayManage, tenant],
      params: nameParams,
      query: tenantQuery,
      responses: { 200: { description: 'The references', schema: referencesResponse }, ...refusals, 503: busy },
      async handle({ params: { name } }, _request, response) {
        response.json(await references.to(name, callContextOf(response)));
      },
    }),
    route({
      method: 'get',
      path: '/form/v1/register-references/dead',
      summary: 'List references to registers that do not exist',
      description: 'A choice with such a reference has no options.',
      guards: [bearer, mayManage, tenant],
      query: tenantQuery,
      responses: { 200: { description: 'The references', schema: referencesResponse }, ...refusals, 503: busy },
      async handle(_input, _request, response) {
        response.json(await references.dead(callContextOf(response)));
      },
    }),
  ];
}
