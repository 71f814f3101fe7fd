// Routes for the data that a page needs before a form exists: the definition, and the registers behind its choice
// controls. The routes need no cookie.
import { LRUCache } from 'lru-cache';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { parseJson } from '../../service/json-parser.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import {
  base,
  definitionParams,
  definitionResponse,
  entriesResponse,
  failures,
  languages,
  registerParams,
} from './schema.ts';

export function applyDefinitionRoute({ guards, api, cookies, files, urnPrefix }: ApplyRoutesOptions): Route {
  const membersOf = createDefinitionMembers();
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
    answers: {
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
      const members = membersOf(`${tenant.id}\0${params.definition}`, text);
      cookies.browserOf(request, response);
      const more = JSON.stringify({ tenantName: tenant.name, files: await files.isAvailable(), urnPrefix, languages });
      response.type('application/json').send(`{${members},${more.slice(1)}`);
    },
  });
}

/** Maximum number of characters of the definitions and members that are kept. */
const keptCharacters = 16 * 1_048_576;

/**
 * Returns a function that returns the members of a definition that a page gets, as JSON text without braces. `text` is
 * the definition as the form service returned it. The result is kept until the text changes: parsing and writing a
 * megabyte takes 40 ms or more, and anyone may read a definition that permits applicants without an account.
 */
function createDefinitionMembers(): (key: string, text: string) => string {
  const known = new LRUCache<string, { text: string; members: string }>({
    maxSize: keptCharacters,
    sizeCalculation: ({ text, members }) => text.length + members.length + 1,
  });
  return (key, text) => {
    const before = known.get(key);
    if (before?.text === text) return before.members;
    const { id, name, description, dataSchema, uiSchema } = parseJson(text) as Record<string, unknown>;
    const members = JSON.stringify({ id, name, description, dataSchema, uiSchema }).slice(1, -1);
    known.set(key, { text, members });
    return members;
  };
}

function notForApplicants(error: unknown): never {
  const isHidden = error instanceof Problem && ['forbidden', 'not-found'].includes(error.slug);
  throw isHidden ? new Problem('not-found', 'There is no such form for applicants without an account.') : error;
}

/**
 * Milliseconds for which a register's entries are cached. The form service's `Cache-Control` header allows caching for
 * this time.
 */
const entriesKept = 60_000;

export function applyRegisterRoute({ guards, api }: ApplyRoutesOptions): Route {
  const known = new LRUCache<string, string>({
    ttl: entriesKept,
    maxSize: 32 * 1_048_576,
    sizeCalculation: (text) => text.length + 1,
  });
  return route({
    method: 'get',
    path: `${base}/registers/:name/entries`,
    summary: 'Read the entries of a register that anyone may read',
    tag: 'Intake application',
    guards: guards.forAnyone,
    params: registerParams,
    answers: { 200: { description: 'The entries', schema: entriesResponse }, ...failures },
    async handle({ params }, _request, response) {
      const { id: tenantId } = tenantOf(response);
      const key = `${tenantId}\0${params.name}`;
      let entries = known.get(key);
      if (entries === undefined) {
        const path = `/registers/${encodeURIComponent(params.name)}/entries`;
        const answer = await api
          .call({ method: 'GET', path, tenantId, isAnonymous: true, context: response })
          .catch(notOpen);
        entries = answer.text;
        known.set(key, entries);
      }
      response.setHeader('Cache-Control', 'private, max-age=60');
      response.type('application/json').send(`{"entries":${entries}}`);
    },
  });
}

function notOpen(error: unknown): never {
  const isHidden = error instanceof Problem && ['unauthenticated', 'not-found'].includes(error.slug);
  throw isHidden ? new Problem('not-found', 'There is no such register for applicants without an account.') : error;
}
