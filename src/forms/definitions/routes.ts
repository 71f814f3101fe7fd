// The route that checks a form definition, before or after it is configured.
import type { Caller } from '../../service/auth/identity.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { type LocalRateLimiter, rateLimit } from '../../service/limits/rate-limit.ts';
import type { DefinitionCheck } from './check.ts';
import type { DefinitionTexts } from './definition-texts.ts';
import type { DefinitionList } from './list.ts';
import { checkBody, checkResponse, tenantQuery } from './schema.ts';
import type { DefinitionSource } from './source.ts';

export interface DefinitionRoutesOptions {
  /** Accepts tokens for this service and for the configuration service. */
  bearer: Guard;
  /** Admits callers who manage forms or write configuration. */
  mayManage: Guard;
  isManager(caller: Caller): boolean;
  tenant: Guard;
  check: DefinitionCheck;
  checks: LocalRateLimiter;
  list: DefinitionList;
  find: DefinitionSource['find'];
  textOf: DefinitionTexts;
}

export function checkDefinitionRoute({ bearer, mayManage, tenant, check, checks }: DefinitionRoutesOptions): Route {
  const callerLimit = rateLimit(checks, ({ locals: { caller } }) => `${caller?.issuer}\0${caller?.subject}`);
  return route({
    method: 'post',
    path: '/form/v1/definitions/check',
    audit: { unaudited: 'It stores nothing.' },
    operationId: 'checkDefinition',
    summary: 'Check a form definition',
    description:
      'Lists what is wrong with the definition in the body: invalid fields, a data schema that does not compile, patterns ' +
      'that may take very long, a UI schema that names unknown properties or missing registers, unknown roles, and ' +
      'contradictions. Stores nothing.',
    guards: [bearer, mayManage, tenant, callerLimit],
    query: tenantQuery,
    body: checkBody,
    responses: {
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
      response.json(await check(body, { tenantId: tenantOf(response).id }));
    },
  });
}
