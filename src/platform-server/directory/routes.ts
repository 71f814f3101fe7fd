// Routes of the directory, read only: entries come from the seed.
import { z } from 'zod';
import type { Tenants } from '../../service/auth/identity.ts';
import { anonymous, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { platformNamespace, showEntry } from './entry.ts';
import { apiParams, entryAnswer, namespaceParams } from './schema.ts';
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
      summary: 'All entries of a namespace',
      guards: [anonymous],
      params: namespaceParams,
      answers: {
        200: { description: 'The entries, possibly none', schema: z.array(entryAnswer) },
        400: { description: 'The namespace has another shape' },
        404: { description: 'The namespace names no tenant' },
      },
      async handle({ params: { namespace } }, _request, response) {
        if (namespace !== platformNamespace && !(await tenants.byName(namespace)))
          throw new Problem('not-found', 'There is no such namespace.');
        response.json((await store.list(namespace)).map((entry) => showEntry(urnPrefix, entry)));
      },
    }),
    route({
      method: 'get',
      path: '/directory/v2/namespaces/:namespace/services/:service/apis/:api',
      summary: 'One API entry',
      guards: [anonymous],
      params: apiParams,
      answers: {
        200: { description: 'The entry', schema: entryAnswer },
        400: { description: 'A parameter has another shape' },
        404: { description: 'No such entry' },
      },
      async handle({ params: { namespace, service, api } }, _request, response) {
        const entry = await store.find(namespace, `${service}:${api}`);
        if (!entry) throw new Problem('not-found', 'The directory has no such entry.');
        response.json(showEntry(urnPrefix, entry));
      },
    }),
  ];
}
