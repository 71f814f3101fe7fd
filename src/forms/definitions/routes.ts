// The routes that read a form definition, and that check one before it is configured or after.
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import { type LocalRateLimiter, rateLimit } from '../../service/limits/rate-limit.ts';
import { bundledSchema } from './bundled-schema.ts';
import type { DefinitionCheck } from './check.ts';
import { mayReadDefinition } from './definition.ts';
import { checkBody, checkResponse, definitionParams, definitionResponse, tenantQuery } from './schema.ts';
import type { DefinitionSource } from './source.ts';

export interface DefinitionRoutesOptions {
  /** Accepts tokens for this service and for the configuration service. */
  bearer: Guard;
  /** Admits those who manage forms or write configuration. */
  mayManage: Guard;
  tenant: Guard;
  definitions: DefinitionSource;
  check: DefinitionCheck;
  checks: LocalRateLimiter;
}

export function checkDefinitionRoute({ bearer, mayManage, tenant, check, checks }: DefinitionRoutesOptions): Route {
  const callerLimit = rateLimit(checks, ({ locals: { caller } }) => `${caller?.issuer}\0${caller?.subject}`);
  return route({
    method: 'post',
    path: '/form/v1/definitions/check',
    summary: 'Check a form definition',
    description:
      'Lists what is wrong with the definition in the body: invalid fields, a data schema that does not compile, patterns ' +
      'that may take very long, a UI schema that names unknown properties or missing registers, unknown roles, and ' +
      'contradictions. Stores nothing.',
    guards: [bearer, mayManage, tenant, callerLimit],
    query: tenantQuery,
    body: checkBody,
    answers: {
      200: { description: 'The problems; none if the list is empty', schema: checkResponse },
      403: { description: 'The caller has neither form-admin nor configuration-admin, or names another tenant' },
      429: {
        description: 'The caller has checked too many definitions',
        headers: { 'Retry-After': 'Seconds', RateLimit: 'Draft 7' },
      },
      502: { description: 'The configuration service failed or denied access' },
      503: { description: 'Too many definitions and forms of this tenant are being validated' },
    },
    async handle({ body }, _request, response) {
      response.json(await check(body, { tenantId: tenantOf(response).id, traceparent: response.locals.traceparent }));
    },
  });
}

export function readDefinitionRoute({ bearer, tenant, definitions }: DefinitionRoutesOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/definitions/:definitionId',
    summary: 'Read a form definition, to show its form',
    description:
      'By form-admin, callers with a role that the definition names, and intake applications if it permits anonymous ' +
      'applicants. The data schema contains the shared schemas that it refers to.',
    guards: [bearer, tenant],
    params: definitionParams,
    query: tenantQuery,
    answers: {
      200: { description: 'The definition', schema: definitionResponse },
      403: { description: 'The caller has no role for this definition' },
      404: { description: 'There is no such definition' },
      409: { description: 'The definition cannot be used' },
      502: { description: 'The configuration service failed or denied access' },
    },
    async handle({ params: { definitionId } }, _request, response) {
      const found = await definitions.find(tenantOf(response).id, definitionId, { permission: true, isChosen: true });
      if (!found) throw new Problem('not-found', 'There is no such form definition.');
      if (!mayReadDefinition(callerOf(response).roles, found))
        throw new Problem('forbidden', 'The caller has no role for this form definition.');
      const { id, name, description, anonymousApply, dataSchema, uiSchema } = found;
      response.json({
        ...{ id, name, anonymousApply, dataSchema: bundledSchema(dataSchema), uiSchema: uiSchema ?? null },
        ...(description && { description }),
      });
    },
  });
}
