// The addresses of data registers. Their order of checks is 401, 403, tenant, validation, then the configuration
// service, whose every failure is 502.
import type { Response } from 'express';
import type pg from 'pg';
import type { Configuration } from '../../platform/configuration.ts';
import { type Answer, type Guard, type Route, route } from '../../service/http/http-app.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import type { Urns } from '../../service/urn.ts';
import { createRegisterChanges, notFound, type RegisterChanges } from './changes.ts';
import { entriesRoute } from './entries-routes.ts';
import { createRegisterGuards, type RegisterPolicyOptions } from './policy.ts';
import { registerOf } from './register.ts';
import {
  createBody,
  encodeCursor,
  listAnswer,
  listQuery,
  nameParams,
  patchBody,
  registerAnswer,
  tenantQuery,
} from './schema.ts';
import { createRegisterStore, type RegisterStore } from './store.ts';
import { createTurns, type TurnOptions } from './turns.ts';

export interface RegisterOptions extends RegisterPolicyOptions, TurnOptions {
  /** By the service's own account, which needs configured-service and configuration-admin. */
  configuration: Configuration;
  pool: pg.Pool;
}

const path = '/form/v1/registers';
const refusals = {
  400: { description: 'The request is not valid, or the configuration service rejected it' },
  401: { description: 'No valid bearer' },
  403: { description: 'The caller has neither form-admin nor configuration-admin, or names another tenant' },
  502: { description: 'The configuration service failed or denied access' },
} satisfies Record<number, Answer>;
const missing: Answer = { description: 'No such register: one without its definition or its entries does not exist' };
const busy: Answer = {
  description: 'Another change of the register is still running, or the database cannot be reached',
  headers: { 'Retry-After': 'Seconds' },
};

export function registerRoutes(options: RegisterOptions): Route[] {
  const { bearer, mayManage, tenant, bearerOrAnonymousRead } = createRegisterGuards(options);
  const store = createRegisterStore(options.configuration);
  const changes = createRegisterChanges({ store, turns: createTurns(options) });
  const { urns } = options;
  return [
    listRoute([bearer, mayManage, tenant], store),
    createRoute([bearer, mayManage, tenant], changes, urns),
    readRoute([bearer, mayManage, tenant], store),
    patchRoute([bearer, mayManage, tenant], changes),
    deleteRoute([bearer, mayManage, tenant], changes),
    entriesRoute([bearerOrAnonymousRead], { path: `${path}/:name/entries`, store, urns, refusals, missing }),
  ];
}

function callOf(response: Response) {
  return { tenantId: tenantOf(response).id, traceparent: response.locals.traceparent };
}

function listRoute(guards: Guard[], store: RegisterStore): Route {
  return route({
    method: 'get',
    path,
    summary: "List the tenant's registers",
    description: 'Sorted by name. Registers that lack their definition or their entries are left out.',
    guards,
    query: listQuery,
    answers: { 200: { description: 'A page of registers', schema: listAnswer }, ...refusals },
    async handle({ query: { top, after } }, _request, response) {
      const { registers, next } = await store.list(callOf(response), { top, after });
      const page = {
        after: after === undefined ? null : encodeCursor(after),
        next: next === undefined ? null : encodeCursor(next),
        size: registers.length,
      };
      response.json({ results: registers, page });
    },
  });
}

function readRoute(guards: Guard[], store: RegisterStore): Route {
  return route({
    method: 'get',
    path: `${path}/:name`,
    summary: 'Read a register',
    description: 'Entries are those that forms use: of the active revision, else of the latest.',
    guards,
    params: nameParams,
    query: tenantQuery,
    answers: { 200: { description: 'The register', schema: registerAnswer }, ...refusals, 404: missing },
    async handle({ params }, _request, response) {
      const register = registerOf(params.name, await store.read(params.name, callOf(response)));
      if (!register) throw notFound();
      response.json(register);
    },
  });
}

function createRoute(guards: Guard[], changes: RegisterChanges, urns: Urns): Route {
  return route({
    method: 'post',
    path,
    summary: 'Create a register',
    description:
      `Forms refer to it by \`${urns.register('<name>')}\`, the name as it is. ` +
      'What a failed create left behind does not stand in the way of a repeat.',
    guards,
    query: tenantQuery,
    body: createBody,
    answers: {
      201: { description: 'The register', schema: registerAnswer, headers: { Location: 'Its address' } },
      ...refusals,
      409: { description: 'A register with this name exists' },
      503: busy,
    },
    async handle({ body: { name, description, entries } }, _request, response) {
      const register = await changes.create({ name, description, entries }, callOf(response));
      response
        .status(201)
        .location(`${path}/${encodeURIComponent(name)}`)
        .json(register);
    },
  });
}

function patchRoute(guards: Guard[], changes: RegisterChanges): Route {
  return route({
    method: 'patch',
    path: `${path}/:name`,
    summary: 'Change the description, the entries, or both',
    description:
      'A field that is not sent stays. Entries are replaced whole and published: where an older revision is pinned as ' +
      'active, the pin moves to what was written. `anonymousRead` stays as it is.',
    guards,
    params: nameParams,
    query: tenantQuery,
    body: patchBody,
    answers: {
      200: { description: 'The changed register', schema: registerAnswer },
      ...refusals,
      404: missing,
      503: busy,
    },
    async handle({ params, body: { description, entries } }, _request, response) {
      response.json(await changes.patch(params.name, { description, entries }, callOf(response)));
    },
  });
}

function deleteRoute(guards: Guard[], changes: RegisterChanges): Route {
  return route({
    method: 'delete',
    path: `${path}/:name`,
    summary: 'Delete a register with the history of its entries',
    description:
      'Forms that refer to it lose its options. Half a register, as a failed delete leaves it, is removed too and ' +
      'answered with 404.',
    guards,
    params: nameParams,
    query: tenantQuery,
    answers: { 204: { description: 'Deleted' }, ...refusals, 404: missing, 503: busy },
    async handle({ params }, _request, response) {
      await changes.remove(params.name, callOf(response));
      response.status(204).end();
    },
  });
}
