// Routes for the data that a page needs before a form exists: the definition, and the registers behind its choice
// controls. The routes need no cookie.
import { LRUCache } from 'lru-cache';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { sendShared, tenantOf } from '../../service/http/request-context.ts';
import { languages } from '../forms/form.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { insteadOf, notForApplicants } from './guards.ts';
import { base, definitionParams, definitionResponse, entriesResponse, failures, registerParams } from './schema.ts';

export function applyDefinitionRoute(options: ApplyRoutesOptions): Route {
  const { guards, api, cookies, files, urnPrefix, fileLimit } = options;
  const bodyOf = createDefinitionBodies();
  return route({
    method: 'get',
    // This GET has an effect: it sets the cookie that identifies the browser.
    getHasEffects: true,
    path: `${base}/definitions/:definition`,
    audit: { unaudited: 'It only sets a cookie.' },
    summary: 'Read a form definition that applicants without an account may use',
    tag: 'Intake application',
    guards: guards.forAnyone,
    params: definitionParams,
    responses: {
      200: {
        description: 'The definition. Its data schema contains the shared schemas that it refers to',
        schema: definitionResponse,
      },
      ...failures,
      404: { description: 'There is no such definition, or applicants need an account' },
    },
    async handle({ params }, request, response) {
      const tenant = tenantOf(response);
      const path = `/definitions/${encodeURIComponent(params.definition)}`;
      const { text } = await api
        .call({ method: 'GET', path, tenantId: tenant.id, context: response })
        .catch(notForApplicants);
      cookies.browserOf(request, response);
      const ofTenant = { tenantName: tenant.name, files: await files.isAvailable() };
      const more = JSON.stringify({ ...ofTenant, fileLimit, urnPrefix, languages });
      sendShared(response, 'application/json', bodyOf(`${tenant.id}\0${params.definition}`, text, more));
    },
  });
}

/** Maximum size of the cache: characters of the definitions plus bytes of the bodies. */
const keptCharacters = 16 * 1_048_576;

/**
 * Returns a function that returns the body of a response. `text` is the definition as the form service returned it, and
 * `more` the JSON text of further members. The body is kept until a text changes, so that many responses share it. The
 * definition is not parsed: a large one would take half a second, and two large ones drive each other out of the cache.
 */
function createDefinitionBodies(): (key: string, text: string, more: string) => Buffer {
  const known = new LRUCache<string, { text: string; more: string; body: Buffer }>({
    maxSize: keptCharacters,
    sizeCalculation: ({ text, body }) => text.length + body.length,
  });
  return (key, text, more) => {
    const before = known.get(key);
    if (before?.text === text && before.more === more) return before.body;
    const body = Buffer.from(`${text.slice(0, -1)},${more.slice(1)}`);
    known.set(key, { text, more, body });
    return body;
  };
}

/**
 * Milliseconds for which a register's entries are cached. The form service's `Cache-Control` header allows caching for
 * this time.
 */
const entriesKept = 60_000;

export function applyRegisterRoute({ guards, api }: ApplyRoutesOptions): Route {
  const known = new LRUCache<string, Buffer>({
    ttl: entriesKept,
    maxSize: 32 * 1_048_576,
    sizeCalculation: (body) => body.length,
  });
  return route({
    method: 'get',
    path: `${base}/registers/:name/entries`,
    summary: 'Read the entries of a register that anyone may read',
    tag: 'Intake application',
    guards: guards.forAnyone,
    params: registerParams,
    responses: { 200: { description: 'The entries', schema: entriesResponse }, ...failures },
    async handle({ params }, _request, response) {
      const { id: tenantId } = tenantOf(response);
      const key = `${tenantId}\0${params.name}`;
      let body = known.get(key);
      if (body === undefined) {
        const path = `/registers/${encodeURIComponent(params.name)}/entries`;
        const apiResponse = await api
          .call({ method: 'GET', path, tenantId, isAnonymous: true, context: response })
          .catch(notOpen);
        body = Buffer.from(`{"entries":${apiResponse.text}}`);
        known.set(key, body);
      }
      response.setHeader('Cache-Control', 'private, max-age=60');
      sendShared(response, 'application/json', body);
    },
  });
}

const notOpen = insteadOf(
  ['unauthenticated', 'not-found'],
  () => new Problem('not-found', 'There is no such register for applicants without an account.'),
);
