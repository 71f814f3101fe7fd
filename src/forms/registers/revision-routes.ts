// Routes for the revisions of a register's entries: list, read, keep, pin and compare.
import { type Route, route } from '../../service/http/http-app.ts';
import { notFound } from './changes.ts';
import { compareEntries } from './entry-changes.ts';
import { noRevision } from './entry-edits.ts';
import { type Register, type Revision, refuseLong, registerOf } from './register.ts';
import type { RegisterRoutesOptions } from './register-routes-options.ts';
import {
  busy,
  compareQuery,
  comparisonResponse,
  keptResponse,
  missing,
  nameParams,
  path,
  pinnedResponse,
  refusals,
  revisionBody,
  revisionParams,
  revisionResponse,
  revisionsQuery,
  revisionsResponse,
  tenantQuery,
} from './schema.ts';
import { type CallContext, callContextOf } from './store.ts';

const all = `${path}/:name/revisions`;
const one = `${all}/:revision`;

/** A page is shorter than `top` allows, because the configuration service sends the entries of each revision. */
const revisionsOfPage = 10;

const missingRevision = { description: 'There is no such register or revision' };

export function revisionRoutes(options: RegisterRoutesOptions): Route[] {
  return [listRoute(options), keepRoute(options), readRoute(options), compareRoute(options), pinRoute(options)];
}

interface Pinned {
  register: Register;
  latest: Revision | undefined;
  active: Revision | undefined;
}

async function find({ store }: RegisterRoutesOptions, name: string, context: CallContext): Promise<Pinned> {
  const parts = await store.read(name, context);
  const register = registerOf(name, parts);
  if (!register) throw notFound();
  return { register, latest: parts.latest, active: parts.active ?? parts.latest };
}

function listRoute(options: RegisterRoutesOptions): Route {
  const { bearer, mayManage, tenant, store } = options;
  return route({
    method: 'get',
    path: all,
    summary: "List the revisions of a register's entries",
    description: 'Newest first.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: revisionsQuery,
    responses: { 200: { description: 'A page of revisions', schema: revisionsResponse }, ...refusals, 404: missing },
    async handle({ params: { name }, query: { top, after } }, _request, response) {
      const context = callContextOf(response);
      const { latest, active } = await find(options, name, context);
      const { results, next } = await store.revisions(name, context, {
        top: Math.min(top, revisionsOfPage),
        after: after || undefined,
      });
      response.json({
        results: results.map(({ revision, created, lastUpdated, configuration }) => ({
          ...{ revision, created: created ?? null, lastUpdated: lastUpdated ?? null },
          entries: Array.isArray(configuration) ? configuration.length : null,
          latest: revision === latest?.revision,
          active: revision === active?.revision,
        })),
        page: { after: after || null, next: next ?? null, size: results.length },
      });
    },
  });
}

function keepRoute({ bearer, mayManage, tenant, edits }: RegisterRoutesOptions): Route {
  return route({
    method: 'post',
    path: all,
    audit: 'register.keep-revision',
    summary: 'Keep the latest revision',
    description: 'Later changes go to a copy, so that the kept revision can be compared and pinned.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: tenantQuery,
    responses: {
      201: { description: 'The number of the copy', schema: keptResponse },
      ...refusals,
      404: missing,
      503: busy,
    },
    async handle({ params: { name } }, _request, response) {
      const { revision } = await edits.keep(name, callContextOf(response));
      response.status(201).json({ latest: revision });
    },
  });
}

function readRoute(options: RegisterRoutesOptions): Route {
  const { bearer, mayManage, tenant, store } = options;
  return route({
    method: 'get',
    path: one,
    summary: 'Read the entries of a revision',
    guards: [bearer, mayManage, tenant],
    params: revisionParams,
    query: tenantQuery,
    responses: {
      200: { description: 'The revision', schema: revisionResponse },
      ...refusals,
      404: missingRevision,
    },
    async handle({ params: { name, revision } }, _request, response) {
      const context = callContextOf(response);
      const [, entries] = await Promise.all([find(options, name, context), store.revision(name, revision, context)]);
      if (!entries) throw noRevision();
      response.json({ revision, entries });
    },
  });
}

function compareRoute(options: RegisterRoutesOptions): Route {
  const { bearer, mayManage, tenant, store } = options;
  return route({
    method: 'get',
    path: `${one}/changes`,
    summary: 'Compare a revision with another one',
    guards: [bearer, mayManage, tenant],
    params: revisionParams,
    query: compareQuery,
    responses: {
      200: { description: 'What changed from the one to the other', schema: comparisonResponse },
      ...refusals,
      404: missingRevision,
    },
    async handle({ params: { name, revision }, query: { to, keyField } }, _request, response) {
      const context = callContextOf(response);
      const { latest } = await find(options, name, context);
      const [before, after] = await Promise.all(
        [revision, to ?? latest?.revision ?? 0].map((each) => store.revision(name, each, context)),
      );
      if (!before || !after) throw noRevision();
      refuseLong(before);
      refuseLong(after);
      response.json(compareEntries(before, after, keyField));
    },
  });
}

function pinRoute({ bearer, mayManage, tenant, edits }: RegisterRoutesOptions): Route {
  return route({
    method: 'put',
    path: `${path}/:name/active-revision`,
    audit: 'register.activate-revision',
    summary: 'Make forms use a revision',
    description: 'Until another revision is chosen, or the entries are changed: a change is published.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: tenantQuery,
    body: revisionBody,
    responses: {
      200: { description: 'The number of the revision', schema: pinnedResponse },
      ...refusals,
      404: missingRevision,
      503: busy,
    },
    async handle({ params: { name }, body: { revision } }, _request, response) {
      const { revision: active } = await edits.pin(name, revision, callContextOf(response));
      response.json({ active });
    },
  });
}
