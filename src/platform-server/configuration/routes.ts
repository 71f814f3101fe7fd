// Routes of the configuration service. A read of a configuration that does not exist returns an empty entry instead of
// 404.
import type { Response } from 'express';
import { ifBearer } from '../../service/auth/bearer-guards.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { shortPages, toPage } from '../page.ts';
import type { ConfigurationChanges } from './changes.ts';
import { type ConfigurationKey, coreScope, type Revision } from './configuration.ts';
import { actorOf, type ConfigurationGuards, scopeOf } from './policy.ts';
import type { StoredEntry } from './rows.ts';
import {
  activeQuery,
  activeSetResponse,
  deletedResponse,
  entryResponse,
  latestResponse,
  listQuery,
  listResponse,
  nameParams,
  namespaceParams,
  operationActions,
  patchBody,
  postBody,
  readQuery,
  refusals,
  revisionParams,
  revisionResponse,
  revisionsQuery,
  revisionsResponse,
} from './schema.ts';
import type { ConfigurationStore } from './store.ts';

export interface ConfigurationRouteOptions {
  guards: ConfigurationGuards;
  store: ConfigurationStore;
  changes: ConfigurationChanges;
  urnOf(namespace: string, name: string): string;
}

const base = '/configuration/v2/configuration/:namespace';
type KeyParams = { namespace: string; name: string };

function keyOf({ namespace, name }: KeyParams, response: Response, core?: string): ConfigurationKey {
  return { scope: core === undefined ? scopeOf(response.locals.tenant) : coreScope, namespace, name };
}

export function configurationRoutes(options: ConfigurationRouteOptions): Route[] {
  return [
    listRoute(options),
    entryRoute(options),
    latestRoute(options),
    activeRoute(options),
    revisionsRoute(options),
    revisionRoute(options),
    patchRoute(options),
    operationRoute(options),
    deleteRoute(options),
  ];
}

type UrnOf = ConfigurationRouteOptions['urnOf'];

function mapEntry(urnOf: UrnOf, namespace: string, { name, latest, active }: StoredEntry, withActive: boolean) {
  const entry = { urn: urnOf(namespace, name), namespace, name, latest: latest ?? null };
  return withActive ? { ...entry, active: active ?? null } : entry;
}

function mapLatest(urnOf: UrnOf, { namespace, name }: KeyParams, latest: Revision) {
  return { urn: urnOf(namespace, name), namespace, name, latest };
}

function listRoute({ guards, store, urnOf }: ConfigurationRouteOptions): Route {
  const { bearer, mayList, tenantOrCore } = guards;
  return route({
    method: 'get',
    path: base,
    summary: 'The configurations of a namespace, by name',
    description: shortPages,
    guards: [bearer, mayList, tenantOrCore],
    params: namespaceParams,
    query: listQuery,
    responses: { 200: { description: 'A page', schema: listResponse }, ...refusals },
    async handle({ params, query }, _request, response) {
      const { top, after, criteria } = query;
      const found = await store.list(scopeOf(response.locals.tenant), params.namespace, { top, after, criteria });
      const { results, page } = toPage(found.items, { ...found, after, cursorOf: ({ name }) => name });
      response.json({
        results: results.map((entry) => mapEntry(urnOf, params.namespace, entry, query.includeActive)),
        page,
      });
    },
  });
}

function entryRoute({ guards, store, urnOf }: ConfigurationRouteOptions): Route {
  const { bearer, mayRead, tenantOrCore } = guards;
  return route({
    method: 'get',
    path: `${base}/:name`,
    summary: 'A configuration: its latest revision and the active one',
    guards: [bearer, mayRead, tenantOrCore],
    params: nameParams,
    query: readQuery,
    responses: { 200: { description: 'A revision that does not exist is null', schema: entryResponse }, ...refusals },
    async handle({ params, query }, _request, response) {
      const entry = await store.read(keyOf(params, response, query.core));
      response.json(mapEntry(urnOf, params.namespace, entry, true));
    },
  });
}

function latestRoute({ guards, store }: ConfigurationRouteOptions): Route {
  const { bearer, mayRead, tenantOrCore, anonymousRead } = guards;
  return route({
    method: 'get',
    path: `${base}/:name/latest`,
    summary: 'The value of the latest revision',
    guards: [ifBearer([bearer, mayRead, tenantOrCore], [anonymousRead])],
    params: nameParams,
    query: readQuery,
    responses: { 200: { description: 'The bare value; {} if there is none' }, ...refusals },
    async handle({ params, query }, _request, response) {
      const { latest } = await store.read(keyOf(params, response, query.core));
      response.json(latest ? latest.configuration : {});
    },
  });
}

function activeRoute({ guards, store }: ConfigurationRouteOptions): Route {
  const { bearer, mayRead, tenantOrCore, anonymousRead } = guards;
  return route({
    method: 'get',
    path: `${base}/:name/active`,
    summary: 'The active revision',
    guards: [ifBearer([bearer, mayRead, tenantOrCore], [anonymousRead])],
    params: nameParams,
    query: activeQuery,
    responses: { 200: { description: 'An empty body if there is none', schema: revisionResponse }, ...refusals },
    async handle({ params, query }, _request, response) {
      const { latest, active } = await store.read(keyOf(params, response));
      const found = active ?? (query.orLatest ? latest : undefined);
      if (found) response.json(found);
      else response.end();
    },
  });
}

function revisionsRoute({ guards, store }: ConfigurationRouteOptions): Route {
  const { bearer, mayRead, tenantOrCore } = guards;
  return route({
    method: 'get',
    path: `${base}/:name/revisions`,
    summary: 'The revisions of a configuration, newest first',
    description: shortPages,
    guards: [bearer, mayRead, tenantOrCore],
    params: nameParams,
    query: revisionsQuery,
    responses: { 200: { description: 'A page', schema: revisionsResponse }, ...refusals },
    async handle({ params, query: { top, after, criteria } }, _request, response) {
      const found = await store.revisions(keyOf(params, response), { top, after, criteria });
      response.json(toPage(found.items, { ...found, after, cursorOf: ({ revision }) => revision }));
    },
  });
}

function revisionRoute({ guards, store }: ConfigurationRouteOptions): Route {
  const { bearer, mayRead, tenantOrCore } = guards;
  return route({
    method: 'get',
    path: `${base}/:name/revisions/:revision`,
    summary: 'The value of one revision',
    guards: [bearer, mayRead, tenantOrCore],
    params: revisionParams,
    responses: { 200: { description: 'The bare value' }, ...refusals, 404: { description: 'No such revision' } },
    async handle({ params }, _request, response) {
      const found = await store.revision(keyOf(params, response), params.revision);
      if (!found) throw new Problem('not-found', 'The revision does not exist.');
      response.json(found.configuration);
    },
  });
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
