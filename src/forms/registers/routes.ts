// Routes of data registers. A request is processed in this order: authentication (401), roles (403), tenant,
// validation, and then the calls to the configuration service. If that service rejects the request, the response is
// 400. If the tenant’s documents are too large to be read this often, it is 503; for every failure of the service, 502.
import { type Route, route } from '../../service/http/http-app.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import { notFound } from './changes.ts';
import { entriesRoute } from './entries-routes.ts';
import { entryRoutes } from './entry-routes.ts';
import { referenceRoutes } from './reference-routes.ts';
import { registerOf } from './register.ts';
import type { RegisterRoutesOptions } from './register-routes-options.ts';
import { revisionRoutes } from './revision-routes.ts';
import {
  busy,
  createBody,
  encodeCursor,
  listQuery,
  listResponse,
  missing,
  nameParams,
  patchBody,
  path,
  refusals,
  registerResponse,
  tenantQuery,
} from './schema.ts';
import { callContextOf } from './store.ts';

/**
 * Rejects other parameters. A client that resolves `entries/..?keyField=value` sends the address of the register with
 * the parameter of an entry.
 */
const deleteQuery = tenantQuery.strict();

export function registerRoutes(options: RegisterRoutesOptions): Route[] {
  return [
    listRoute(options),
    createRoute(options),
    readRoute(options),
    patchRoute(options),
    deleteRoute(options),
    entriesRoute(options),
    ...entryRoutes(options),
    ...revisionRoutes(options),
    ...referenceRoutes(options),
  ];
}

function listRoute({ bearer, mayManage, tenant, store }: RegisterRoutesOptions): Route {
  return route({
    method: 'get',
    path,
    summary: "List the tenant's registers",
    description: 'Sorted by name. Registers that lack their definition or their entries are left out.',
    guards: [bearer, mayManage, tenant],
    query: listQuery,
    responses: { 200: { description: 'A page of registers', schema: listResponse }, ...refusals },
    async handle({ query: { top, after } }, _request, response) {
      const { registers, next } = await store.list(callContextOf(response), { top, after });
      const page = {
        after: after === undefined ? null : encodeCursor(after),
        next: next === undefined ? null : encodeCursor(next),
        size: registers.length,
      };
      response.json({ results: registers, page });
    },
  });
}

function readRoute({ bearer, mayManage, tenant, store }: RegisterRoutesOptions): Route {
  return route({
    method: 'get',
    path: `${path}/:name`,
    summary: 'Read a register',
    description: 'Returns the entries that forms use: of the active revision or, without one, of the latest.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: tenantQuery,
    responses: { 200: { description: 'The register', schema: registerResponse }, ...refusals, 404: missing },
    async handle({ params }, _request, response) {
      const register = registerOf(params.name, await store.read(params.name, callContextOf(response)));
      if (!register) throw notFound();
      response.json(register);
    },
  });
}

function createRoute({ bearer, mayManage, tenant, changes, urns }: RegisterRoutesOptions): Route {
  return route({
    method: 'post',
    path,
    audit: 'register.create',
    summary: 'Create a register',
    description:
      `Forms refer to it by \`${urns.register('<name>')}\`, with the name unencoded. ` +
      'A create can be repeated after it failed halfway.',
    guards: [bearer, mayManage, tenant],
    query: tenantQuery,
    body: createBody,
    responses: {
      201: { description: 'The register', schema: registerResponse, headers: { Location: 'Its address' } },
      ...refusals,
      409: { description: 'A register with this name exists' },
      503: busy,
    },
    async handle({ body: { name, description, entries } }, _request, response) {
      noteAudit(response, { objectId: name });
      const register = await changes.create(name, { description, entries }, callContextOf(response));
      response
        .status(201)
        .location(`${path}/${encodeURIComponent(name)}`)
        .json(register);
    },
  });
}

function patchRoute({ bearer, mayManage, tenant, changes }: RegisterRoutesOptions): Route {
  return route({
    method: 'patch',
    path: `${path}/:name`,
    audit: 'register.change',
    summary: 'Change the description, the entries, or both',
    description:
      'A field that is not sent is unchanged. Entries are replaced as a whole and published: if an older revision is ' +
      'active, the new entries become active. `anonymousRead` is unchanged.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: tenantQuery,
    body: patchBody,
    responses: {
      200: { description: 'The changed register', schema: registerResponse },
      ...refusals,
      404: missing,
      503: busy,
    },
    async handle({ params, body: { description, entries } }, _request, response) {
      response.json(await changes.patch(params.name, { description, entries }, callContextOf(response)));
    },
  });
}

function deleteRoute({ bearer, mayManage, tenant, changes }: RegisterRoutesOptions): Route {
  return route({
    method: 'delete',
    path: `${path}/:name`,
    audit: 'register.delete',
    summary: 'Delete a register with the history of its entries',
    description:
      'Forms that refer to it lose its options. An incomplete register, as a failed delete leaves it, is removed as well; ' +
      'the response is 404.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: deleteQuery,
    responses: { 204: { description: 'Deleted' }, ...refusals, 404: missing, 503: busy },
    async handle({ params }, _request, response) {
      await changes.remove(params.name, callContextOf(response));
      response.status(204).end();
    },
  });
}
