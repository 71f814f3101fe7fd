// The route that reports the state of the background work to administrators.
import { role } from '../../service/auth/bearer-guards.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { adminRole } from '../forms/policy.ts';
import { tenantOrAllQuery } from '../forms/schema.ts';
import type { ReadOperations } from './operations.ts';
import { operationsResponse, operationsView } from './schema.ts';

export interface OperationsRouteOptions {
  /** Accepts tokens issued for this service. */
  bearer: Guard;
  tenantOrAll: Guard;
  read: ReadOperations;
}

export function readOperationsRoute({ bearer, tenantOrAll, read }: OperationsRouteOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/operations',
    summary: 'Read the state of the background work, and what was refused lately',
    description:
      'The latest runs of the reconciler, overdue forms, the quarantine, the backlog of events, and limits that were ' +
      'reached. A tenant’s administrator gets the data of the tenant only. Values are at most five seconds old, or older ' +
      'if reading them takes longer.',
    guards: [bearer, role(adminRole), tenantOrAll],
    query: tenantOrAllQuery,
    responses: {
      200: { description: 'The state', schema: operationsResponse },
      403: { description: 'This operation requires the role form-admin' },
      503: { description: 'The database cannot be reached', headers: { 'Retry-After': 'Seconds' } },
    },
    async handle(_input, _request, response) {
      response.json(operationsView(await read(response.locals.tenant?.id)));
    },
  });
}
