// Routes that read the directory. No route changes it, because the entries come from the seed.
import { z } from 'zod';
import type { Tenants } from '../../service/auth/identity.ts';
import { anonymous, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { platformNamespace, showEntry } from './entry.ts';
import { apiParams, entryResponse, namespaceParams } from './schema.ts';
import type { DirectoryStore } from './store.ts';

export interface DirectoryRouteOptions {
  store: DirectoryStore;
  tenants: Pick<Tenants, 'byName'>;
  urnPrefix: string;
}

export function directoryRoutes(options: DirectoryRouteOptions): Route[] {
  const { store, tenants, urnPrefix } = options;
  return [
    route({
      method: 'get',
      path: '/directory/v2/namespaces/:namespace/entries',
      summary: 'List the entries of a namespace',
      guards: [anonymous],
      params: namespaceParams,
      responses: {
        200: { description: 'The entries; the list may be empty', schema: z.array(entryResponse) },
        400: { description: 'The namespace is malformed' },
        404: { description: 'The namespace is neither the platform nor a tenant' },
      },
      async handle({ params: { namespace } }, _request, response) {
        if (namespace !== platformNamespace && !(await tenants.byName(namespace)))
          throw new Problem('not-found', 'The namespace does not exist.');
        response.json((await store.list(namespace)).map((entry) => showEntry(urnPrefix, entry)));
      },
    }),
    route({
      method: 'get',
      path: '/directory/v2/namespaces/:namespace/services/:service/apis/:api',
      summary: 'Read the entry of an API',
      guards: [anonymous],
      params: apiParams,
      responses: {
        200: { description: 'The entry', schema: entryResponse },
        400: { description: 'A parameter is malformed' },
        404: { description: 'No such entry' },
      },
      async handle({ params: { namespace, service, api } }, _request, response) {
        const entry = await store.find(namespace, `${service}:${api}`);
        if (!entry) throw new Problem('not-found', 'The entry does not exist.');
        response.json(showEntry(urnPrefix, entry));
      },
    }),
  ];
}
