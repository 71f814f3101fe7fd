// Routes of the configuration service: those that read (read-routes.ts), and those that write.
import { type Route, route } from '../../service/http/http-app.ts';
import type { ConfigurationChanges } from './changes.ts';
import type { Revision } from './configuration.ts';
import { actorOf } from './policy.ts';
import { base, keyOf, type ReadRouteOptions, readRoutes } from './read-routes.ts';
import {
  activeSetResponse,
  deletedResponse,
  latestResponse,
  nameParams,
  operationActions,
  patchBody,
  postBody,
  refusals,
} from './schema.ts';

export interface ConfigurationRouteOptions extends ReadRouteOptions {
  changes: ConfigurationChanges;
}

export function configurationRoutes(options: ConfigurationRouteOptions): Route[] {
  return [...readRoutes(options), patchRoute(options), operationRoute(options), deleteRoute(options)];
}

type UrnOf = ConfigurationRouteOptions['urnOf'];
type KeyParams = { namespace: string; name: string };

function mapLatest(urnOf: UrnOf, { namespace, name }: KeyParams, latest: Revision) {
  return { urn: urnOf(namespace, name), namespace, name, latest };
}

function patchRoute({ guards, changes, urnOf }: ConfigurationRouteOptions): Route {
  const { bearer, mayPatch, tenantOrCore } = guards;
  return route({
    method: 'patch',
    path: `${base}/:name`,
    audit: 'configuration.change',
    summary: 'Changes the latest revision in place: UPDATE, REPLACE or DELETE of a property',
    guards: [bearer, mayPatch, tenantOrCore],
    params: nameParams,
    body: patchBody,
    responses: {
      200: { description: 'The value after the change', schema: latestResponse },
      ...refusals,
      409: { description: 'Concurrent edits keep changing the value, or the tenant has no room for a larger one' },
    },
    async handle({ params, body }, _request, response) {
      const latest = await changes.edit(keyOf(params, response), body, actorOf(response));
      response.json(mapLatest(urnOf, params, latest));
    },
  });
}

function operationRoute({ guards, changes, urnOf }: ConfigurationRouteOptions): Route {
  const { bearer, mayAdminister, tenantOrCore } = guards;
  return route({
    method: 'post',
    path: `${base}/:name`,
    audit: { actions: Object.values(operationActions), of: ({ body }) => operationActions[body.operation] },
    summary: 'CREATE-REVISION or SET-ACTIVE-REVISION',
    guards: [bearer, mayAdminister, tenantOrCore],
    params: nameParams,
    body: postBody,
    responses: {
      200: {
        description: 'The new revision, or the number of the active one',
        schema: latestResponse.or(activeSetResponse),
      },
      ...refusals,
      409: { description: 'The configuration has its maximum of revisions, or the tenant has no room for another one' },
    },
    async handle({ params, body }, _request, response) {
      const key = keyOf(params, response);
      if (body.operation === 'CREATE-REVISION') {
        response.json(mapLatest(urnOf, params, await changes.createRevision(key, actorOf(response))));
        return;
      }
      await changes.setActive(key, body.revision, actorOf(response));
      response.json({ namespace: params.namespace, name: params.name, active: body.revision });
    },
  });
}

function deleteRoute({ guards, changes }: ConfigurationRouteOptions): Route {
  const { bearer, mayAdminister, tenantOrCore } = guards;
  return route({
    method: 'delete',
    path: `${base}/:name`,
    audit: 'configuration.delete',
    summary: 'Removes a configuration with all of its revisions and its pin',
    guards: [bearer, mayAdminister, tenantOrCore],
    params: nameParams,
    responses: { 200: { description: 'Whether the configuration existed', schema: deletedResponse }, ...refusals },
    async handle({ params }, _request, response) {
      response.json({ deleted: await changes.remove(keyOf(params, response), actorOf(response)) });
    },
  });
}
