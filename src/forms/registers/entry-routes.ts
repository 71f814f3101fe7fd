// Routes that change single entries of a register by their key, and import a CSV table.
import type { Response } from 'express';
import { type Route, route } from '../../service/http/http-app.ts';
import { readTable } from './csv.ts';
import { compareEntries, putEntry, removeEntry } from './entry-changes.ts';
import { importTable } from './import.ts';
import type { RegisterRoutesOptions } from './register-routes-options.ts';
import {
  busy,
  csvBody,
  entryBody,
  entryParams,
  importQuery,
  importResponse,
  keyQuery,
  missing,
  nameParams,
  path,
  refusals,
} from './schema.ts';
import { callContextOf } from './store.ts';

/** The path that the specification names. */
const inPath = `${path}/:name/entries/:key`;
/**
 * The path for any key. Clients resolve a key of dots as a segment of a path (RFC 3986 section 5.2.4), and proxies
 * refuse or decode a slash.
 */
const inQuery = `${path}/:name/entries`;

const addressQuery = keyQuery.extend({ key: entryParams.shape.key });

const conflicts = { description: 'Several entries have this key, or another entry has the new key' };

interface Address {
  name: string;
  key: string;
  keyField: string;
}

export function entryRoutes(options: RegisterRoutesOptions): Route[] {
  return [...putRoutes(options), ...deleteRoutes(options), importRoute(options)];
}

type Shared = Pick<Route, 'method' | 'summary' | 'description' | 'guards' | 'body' | 'responses'>;
type Act = (address: Address, response: Response, body: unknown) => Promise<void>;

function atBothAddresses(shared: Shared, act: Act): Route[] {
  return [
    route({
      ...shared,
      audit: 'register.change',
      path: inPath,
      params: entryParams,
      query: keyQuery,
      handle: ({ params, query, body }, _request, response) => act({ ...params, ...query }, response, body),
    }),
    route({
      ...shared,
      audit: 'register.change',
      path: inQuery,
      params: nameParams,
      query: addressQuery,
      handle: ({ params, query, body }, _request, response) => act({ ...params, ...query }, response, body),
    }),
  ];
}

function putRoutes({ bearer, mayManage, tenant, edits }: RegisterRoutesOptions): Route[] {
  const shared = {
    method: 'put' as const,
    summary: 'Add or replace one entry',
    description:
      'A new entry is added at the end, and must have the key of the URL. An entry that exists is replaced in its place, ' +
      'and may get another key. The change is published as a PATCH of all entries is.',
    guards: [bearer, mayManage, tenant],
    body: entryBody,
    responses: {
      200: { description: 'Replaced', schema: entryBody },
      201: { description: 'Added', schema: entryBody },
      ...refusals,
      404: { description: 'There is no such register, or no entry has the key and the body has a different one' },
      409: conflicts,
      503: busy,
    },
  };
  const put = async ({ name, key, keyField }: Address, response: Response, body: unknown) => {
    const edit = (entries: readonly unknown[]) => putEntry(entries, key, body, keyField);
    const { added } = await edits.edit(name, callContextOf(response), edit);
    response.status(added ? 201 : 200).json(body);
  };
  return atBothAddresses(shared, put);
}

function deleteRoutes({ bearer, mayManage, tenant, edits }: RegisterRoutesOptions): Route[] {
  const shared = {
    method: 'delete' as const,
    summary: 'Delete one entry',
    description: 'Form data that has the value is unchanged.',
    guards: [bearer, mayManage, tenant],
    responses: {
      204: { description: 'Deleted' },
      ...refusals,
      404: { description: 'There is no such register, or no entry has the key' },
      409: conflicts,
      503: busy,
    },
  };
  const remove = async ({ name, key, keyField }: Address, response: Response) => {
    const edit = (entries: readonly unknown[]) => ({ entries: removeEntry(entries, key, keyField) });
    await edits.edit(name, callContextOf(response), edit);
    response.status(204).end();
  };
  return atBothAddresses(shared, remove);
}

function importRoute({ bearer, mayManage, tenant, edits }: RegisterRoutesOptions): Route {
  return route({
    method: 'post',
    path: inQuery,
    audit: {
      actions: ['register.import'],
      of: ({ query: { dryRun } }) => (dryRun ? undefined : 'register.import'),
      otherwise: 'register.import',
    },
    summary: 'Import entries from CSV',
    description:
      'The table has a header and is separated by commas, semicolons or tabs. A single column gives strings; several give ' +
      'objects, with the key in the column `keyField`. Members without a column are kept, and an empty cell removes a ' +
      'member. A column has numbers, true and false, or JSON where all present entries have them, otherwise text. ' +
      'Importing what `GET` returned as CSV changes nothing, but is refused if an entry has no key, such as an empty string, ' +
      'or if two entries have the same key. With `dryRun=true` nothing is written.',
    guards: [bearer, mayManage, tenant],
    params: nameParams,
    query: importQuery,
    bodyType: 'text/csv',
    body: csvBody,
    responses: {
      200: { description: 'What was changed, or would be', schema: importResponse },
      ...refusals,
      404: missing,
      409: { description: 'Several entries of the register have the same key as a row' },
      503: busy,
    },
    async handle({ params: { name }, query: { keyField, mode, dryRun }, body }, _request, response) {
      const table = await readTable(body);
      const edit = (before: readonly unknown[]) => {
        const entries = importTable(table, before, { keyField, mode });
        return { entries, comparison: compareEntries(before, entries, keyField) };
      };
      const { comparison } = await (dryRun ? edits.preview : edits.edit)(name, callContextOf(response), edit);
      response.json({ dryRun, ...comparison });
    },
  });
}
