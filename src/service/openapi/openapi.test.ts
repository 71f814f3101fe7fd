// The OpenAPI document: valid, and with every route in it.
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentedRoutes as routes } from '../../../test/support/documented-routes.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { documentRoutes } from './openapi.ts';

let app: ListeningApp;
beforeAll(async () => {
  const document = documentRoutes({ title: 'Form service', version: '1', description: 'Drafts', routes });
  app = await startApp([...routes, ...document]);
});
afterAll(() => app.close());

interface DocumentShape {
  openapi: string;
  paths: Record<string, Record<string, { security?: unknown; responses: Record<string, { content?: object }> }>>;
}
const fetchDocument = async (path = '/openapi.json') => (await (await fetch(app.url + path)).json()) as DocumentShape;

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const document = await fetchDocument();
    const result = await new Validator().validate({ ...document });
    expect(result.errors ?? []).toEqual([]);
    expect([result.valid, document.openapi]).toEqual([true, '3.1.0']);
  });

  it('has every route of the table, and nothing else', async () => {
    const { paths } = await fetchDocument();
    const documented = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    const served = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(documented.sort()).toEqual(served.sort());
  });

  it('asks for a bearer token exactly where the route does', async () => {
    const { paths } = await fetchDocument();
    expect(paths['/form/v1/forms/{formId}']?.get?.security).toEqual([{ bearer: [] }]);
    expect(paths['/form/v1/forms']?.post?.security).toBeUndefined();
  });

  it('answers failures as problems', async () => {
    const { paths } = await fetchDocument();
    expect(paths['/form/v1/forms/{formId}']?.get?.responses['404']?.content).toEqual({
      'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
    });
  });

  it('names the answers that every route of a kind may give, without the routes saying so', async () => {
    const { paths } = await fetchDocument();
    expect(Object.keys(paths['/form/v1/forms/{formId}']?.get?.responses ?? {})).toEqual(
      expect.arrayContaining(['400', '401', 'default']),
    );
    const create = paths['/form/v1/forms']?.post?.responses;
    expect(Object.keys(create ?? {})).toEqual(expect.arrayContaining(['400', '413', '415', 'default']));
    expect(create).not.toHaveProperty('401');
  });

  it('is the same at the address of the older platform', async () => {
    expect(await fetchDocument('/swagger/docs/v1')).toEqual(await fetchDocument());
  });
});
