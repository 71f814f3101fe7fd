// Tests that the OpenAPI document is valid and contains every route.
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentedRoutes as routes } from '../../../test/support/documented-routes.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { documentRoutes } from './openapi.ts';
import { operationIdOf } from './operation-id.ts';

let app: ListeningApp;
beforeAll(async () => {
  const document = documentRoutes({ title: 'Form service', version: '1', description: 'Drafts', routes });
  app = await startApp([...routes, ...document]);
});
afterAll(() => app.close());

interface DocumentShape {
  openapi: string;
  servers: unknown;
  paths: Record<
    string,
    Record<string, { operationId: string; security?: unknown; responses: Record<string, { content?: object }> }>
  >;
}
const fetchDocument = async (path = '/openapi.json') => (await (await fetch(app.url + path)).json()) as DocumentShape;

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const document = await fetchDocument();
    const result = await new Validator().validate({ ...document });
    expect(result.errors ?? []).toEqual([]);
    expect([result.valid, document.openapi]).toEqual([true, '3.1.0']);
  });

  it('contains exactly the routes of the table', async () => {
    const { paths } = await fetchDocument();
    const documented = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    const served = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(documented.sort()).toEqual(served.sort());
  });

  it('requires a bearer token exactly where the route does', async () => {
    const { paths } = await fetchDocument();
    expect(paths['/form/v1/forms/{formId}']?.get?.security).toEqual([{ bearer: [] }]);
    expect(paths['/form/v1/forms']?.post?.security).toBeUndefined();
  });

  it('describes failures as problems', async () => {
    const { paths } = await fetchDocument();
    expect(paths['/form/v1/forms/{formId}']?.get?.responses['404']?.content).toEqual({
      'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
    });
  });

  it('lists the responses that follow from guards and inputs of a route', async () => {
    const { paths } = await fetchDocument();
    expect(Object.keys(paths['/form/v1/forms/{formId}']?.get?.responses ?? {})).toEqual(
      expect.arrayContaining(['400', '401', '502', '503', '500', '504']),
    );
    const create = paths['/form/v1/forms']?.post?.responses;
    expect(Object.keys(create ?? {})).toEqual(expect.arrayContaining(['400', '413', '415', '500']));
    expect(create).not.toHaveProperty('401');
  });

  it('names the server, and every operation with an id of its own', async () => {
    const { paths, servers } = await fetchDocument();
    expect(servers).toEqual([{ url: '/' }]);
    const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId));
    expect(ids).toEqual(['getService', 'getHealth', 'getForm', 'setForm', 'createForm']);
    expect(operationIdOf('get', '/form/v1/registers/{name}/entries')).toBe('listRegisterEntries');
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('is the same at the path of the older platform', async () => {
    expect(await fetchDocument('/swagger/docs/v1')).toEqual(await fetchDocument());
  });
});
