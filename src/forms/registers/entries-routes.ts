// Returns the entries of one register as a plain array, for form renderers. Without a token, a caller can read only
// registers whose definition sets `anonymousRead`.
import { createHash } from 'node:crypto';
import { ifBearer } from '../../service/auth/bearer-guards.ts';
import { anonymous, type Route, route } from '../../service/http/http-app.ts';
import { sendShared, tenantOf } from '../../service/http/request-context.ts';
import { notFound } from './changes.ts';
import { toCsv } from './csv.ts';
import { type RegisterGuards, refuseRead, varyByCaller } from './policy.ts';
import { registerOf } from './register.ts';
import { entriesResponse, missing, nameParams, path, refusals, tenantQuery } from './schema.ts';
import type { RegisterStore } from './store.ts';

export function entriesRoute(options: RegisterGuards & { store: RegisterStore }): Route {
  const { bearer, tenant, anonymousReadLimit, namedTenant, isManager, store } = options;
  const render = createRenderer(JSON.stringify);
  const renderCsv = createRenderer(toCsv);
  return route({
    method: 'get',
    path: `${path}/:name/entries`,
    summary: "Read a register's entries, without a token if the register is open",
    description:
      'A register is open if `anonymousRead` is set on its definition in the configuration service; a change takes effect ' +
      'here within five minutes. Without a token, `tenantId` names the tenant, and reads are limited by client address. ' +
      'With `Accept: text/csv` the response is a table with a header. Text that a spreadsheet would take for a formula has ' +
      'an apostrophe before it, which an import removes. More than 10,000 entries, and entries with more than 100 different ' +
      'members, are only available as JSON.',
    guards: [varyByCaller, ifBearer([bearer, tenant], [anonymous, anonymousReadLimit, namedTenant])],
    params: nameParams,
    query: tenantQuery,
    headers: { 'If-None-Match': 'ETag of an earlier response' },
    responses: {
      200: {
        description: 'The entries',
        schema: entriesResponse,
        textType: 'text/csv',
        headers: { ETag: 'Of the content', 'Cache-Control': 'max-age=60 without a token; no-store with one' },
      },
      304: { description: 'Nothing has changed' },
      ...refusals,
      401: { description: 'No valid bearer, and the register is not open or does not exist' },
      404: missing,
      429: {
        description: 'Too many reads from this address',
        headers: { 'Retry-After': 'Seconds', RateLimit: 'Draft 7' },
      },
    },
    async handle({ params: { name } }, request, response) {
      const { caller } = response.locals;
      const context = { tenantId: tenantOf(response).id };
      let entries: readonly unknown[] | undefined;
      if (isManager(caller)) {
        entries = registerOf(name, await store.read(name, context))?.entries;
        if (!entries) throw notFound();
      } else {
        entries = await store.readOpen(name, context);
        if (!entries) throw refuseRead(caller);
      }
      const isCsv = request.accepts(['application/json', 'text/csv']) === 'text/csv';
      const { body, etag } = await (isCsv ? renderCsv(entries) : render(entries));
      response.set('ETag', etag);
      if (!caller) response.set('Cache-Control', 'max-age=60');
      if (isKnown(request.headers['if-none-match'], etag)) response.status(304).end();
      else if (isCsv) sendShared(response.attachment(`${name}.csv`), 'text/csv; charset=utf-8; header=present', body);
      else sendShared(response, 'application/json', body);
    },
  });
}

/**
 * Evaluates If-None-Match (RFC 9110 section 13.1.2). Express's own check is not used: it sends the content again if the
 * request has `Cache-Control: no-cache`, which fetch adds to every conditional request.
 */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const given = ifNoneMatch?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return given.includes(etag) || (given.length === 1 && given[0] === '*');
}

interface Rendered {
  body: Buffer;
  etag: string;
}

/**
 * Returns a function that renders entries, and caches their text for as long as the entries are cached. Concurrent
 * requests share one rendering. The strong ETag is the hash of the text.
 */
function createRenderer(
  textOf: (entries: readonly unknown[]) => string | Promise<string>,
): (entries: readonly unknown[]) => Promise<Rendered> {
  const known = new WeakMap<object, Promise<Rendered>>();
  async function render(entries: readonly unknown[]): Promise<Rendered> {
    const body = Buffer.from(await textOf(entries));
    return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
  }
  return (entries) => {
    const rendered = known.get(entries) ?? render(entries);
    known.set(entries, rendered);
    return rendered;
  };
}
