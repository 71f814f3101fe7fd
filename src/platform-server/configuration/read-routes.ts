// Routes that read configuration. Values stay the JSON texts that the database returns: parsing and writing 8 MiB would
// stop all other requests for half a second. A read of a configuration that does not exist returns an empty entry
// instead of 404.
import type { Response } from 'express';
import { ifBearer } from '../../service/auth/bearer-guards.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { shortPages, toPage } from '../page.ts';
import { type ConfigurationKey, coreScope, type Revision } from './configuration.ts';
import { type ConfigurationGuards, scopeOf } from './policy.ts';
import type { ReadBudget } from './read-budget.ts';
import type { StoredEntry } from './rows.ts';
import {
  activeQuery,
  entryResponse,
  listQuery,
  listResponse,
  nameParams,
  namespaceParams,
  readQuery,
  refusals,
  revisionParams,
  revisionResponse,
  revisionsQuery,
  revisionsResponse,
} from './schema.ts';
import type { ConfigurationStore } from './store.ts';

export interface ReadRouteOptions {
  guards: ConfigurationGuards;
  store: ConfigurationStore;
  budget: ReadBudget;
  urnOf(namespace: string, name: string): string;
}

export const base = '/configuration/v2/configuration/:namespace';

export function keyOf(
  { namespace, name }: { namespace: string; name: string },
  response: Response,
  core?: string,
): ConfigurationKey {
  return { scope: core === undefined ? scopeOf(response.locals.tenant) : coreScope, namespace, name };
}

export function readRoutes(options: ReadRouteOptions): Route[] {
  return [
    listRoute(options),
    entryRoute(options),
    latestRoute(options),
    activeRoute(options),
    revisionsRoute(options),
    revisionRoute(options),
  ];
}

/** Returns the guards of a read by a caller with one of the roles that `mayRead` names. */
const readers = ({ guards, budget }: ReadRouteOptions) => [
  ...[guards.bearer, guards.mayRead, guards.tenantOrCore],
  budget.guard,
];

/** Returns the guard of a read that the definition of the configuration may permit without a token. */
const readersOrAnyone = (options: ReadRouteOptions) =>
  ifBearer(readers(options), [
    ...[options.guards.anonymousReadLimit, options.guards.anonymousRead],
    options.budget.guard,
  ]);

/** Sends JSON text. */
function send({ budget }: ReadRouteOptions, response: Response, text: string): void {
  budget.charge(response, text.length);
  response.type('application/json').send(text);
}

/** Returns the JSON text of an object, with further members that are JSON texts. */
function withTexts(members: object, texts: Record<string, string>): string {
  const further = Object.entries(texts).map(([name, text]) => `"${name}":${text}`);
  return `${JSON.stringify(members).slice(0, -1)},${further.join(',')}}`;
}

function revisionText({ configuration, ...members }: Revision<string>): string {
  return withTexts(members, { configuration });
}

function entryText(
  { urnOf }: ReadRouteOptions,
  namespace: string,
  { name, latest, active }: StoredEntry<string>,
  withActive: boolean,
): string {
  const latestText = latest ? revisionText(latest) : 'null';
  const activeText = active === latest ? latestText : active ? revisionText(active) : 'null';
  const texts = { latest: latestText, ...(withActive && { active: activeText }) };
  return withTexts({ urn: urnOf(namespace, name), namespace, name }, texts);
}

function listRoute(options: ReadRouteOptions): Route {
  const { bearer, mayList, tenantOrCore } = options.guards;
  return route({
    method: 'get',
    path: base,
    summary: 'The configurations of a namespace, by name',
    description: shortPages,
    guards: [bearer, mayList, tenantOrCore, options.budget.guard],
    params: namespaceParams,
    query: listQuery,
    responses: { 200: { description: 'A page', schema: listResponse }, ...refusals },
    async handle({ params: { namespace }, query }, _request, response) {
      const { top, after, criteria } = query;
      const found = await options.store.list(scopeOf(response.locals.tenant), namespace, { top, after, criteria });
      const { results, page } = toPage(found.items, { ...found, after, cursorOf: ({ name }) => name });
      const entries = results.map((entry) => entryText(options, namespace, entry, query.includeActive));
      send(options, response, `{"results":[${entries.join(',')}],"page":${JSON.stringify(page)}}`);
    },
  });
}

function entryRoute(options: ReadRouteOptions): Route {
  return route({
    method: 'get',
    path: `${base}/:name`,
    summary: 'A configuration: its latest revision and the active one',
    guards: readers(options),
    params: nameParams,
    query: readQuery,
    responses: { 200: { description: 'A revision that does not exist is null', schema: entryResponse }, ...refusals },
    async handle({ params, query }, _request, response) {
      const entry = await options.store.readTexts(keyOf(params, response, query.core));
      send(options, response, entryText(options, params.namespace, entry, true));
    },
  });
}

function latestRoute(options: ReadRouteOptions): Route {
  return route({
    method: 'get',
    path: `${base}/:name/latest`,
    summary: 'The value of the latest revision',
    guards: [readersOrAnyone(options)],
    params: nameParams,
    query: readQuery,
    responses: { 200: { description: 'The bare value; {} if there is none' }, ...refusals },
    async handle({ params, query }, _request, response) {
      const latest = await options.store.current(keyOf(params, response, query.core), 'latest');
      send(options, response, latest?.configuration ?? '{}');
    },
  });
}

function activeRoute(options: ReadRouteOptions): Route {
  return route({
    method: 'get',
    path: `${base}/:name/active`,
    summary: 'The active revision',
    guards: [readersOrAnyone(options)],
    params: nameParams,
    query: activeQuery,
    responses: { 200: { description: 'An empty body if there is none', schema: revisionResponse }, ...refusals },
    async handle({ params, query }, _request, response) {
      const found = await options.store.current(keyOf(params, response), query.orLatest ? 'activeOrLatest' : 'active');
      if (found) send(options, response, revisionText(found));
      else response.end();
    },
  });
}

function revisionsRoute(options: ReadRouteOptions): Route {
  return route({
    method: 'get',
    path: `${base}/:name/revisions`,
    summary: 'The revisions of a configuration, newest first',
    description: shortPages,
    guards: readers(options),
    params: nameParams,
    query: revisionsQuery,
    responses: { 200: { description: 'A page', schema: revisionsResponse }, ...refusals },
    async handle({ params, query: { top, after, criteria } }, _request, response) {
      const found = await options.store.revisions(keyOf(params, response), { top, after, criteria });
      const { results, page } = toPage(found.items, { ...found, after, cursorOf: ({ revision }) => revision });
      send(options, response, `{"results":[${results.map(revisionText).join(',')}],"page":${JSON.stringify(page)}}`);
    },
  });
}

function revisionRoute(options: ReadRouteOptions): Route {
  return route({
    method: 'get',
    path: `${base}/:name/revisions/:revision`,
    summary: 'The value of one revision',
    guards: readers(options),
    params: revisionParams,
    responses: { 200: { description: 'The bare value' }, ...refusals, 404: { description: 'No such revision' } },
    async handle({ params }, _request, response) {
      const found = await options.store.revision(keyOf(params, response), params.revision);
      if (!found) throw new Problem('not-found', 'The revision does not exist.');
      send(options, response, found.configuration);
    },
  });
}
