// The token handler as a whole: its route table, and what it says about itself.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../../test/support/platform.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../test/support/token-handler.ts';

let handler: TestTokenHandler;
beforeAll(async () => {
  handler = await startTestTokenHandler();
});
afterAll(() => handler.close());

interface OpenApi {
  openapi: string;
  paths: Record<string, Record<string, { summary?: string; responses: Record<string, unknown> }>>;
}
const document = async () => (await call(`${handler.url}/openapi.json`)).body as OpenApi;

describe('the document', () => {
  it('describes every route of the API once, under its versioned path', async () => {
    const { openapi, paths } = await document();
    expect(openapi).toBe('3.1.0');
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(['/', '/health', '/token-handler/v1/clients', '/token-handler/v1/clients/{clientId}']),
    );
    expect(Object.keys(paths).filter((path) => /^\/token-handler\/(?!v1)/.test(path))).toEqual([]);
  });

  it('is served to clients of the older platform, and as a page', async () => {
    expect((await call(`${handler.url}/swagger/docs/v1`)).body).toEqual(await document());
    expect((await call(`${handler.url}/docs`)).text).toContain('Token handler');
  });
});

it('an unknown path is 404, and a known path with another method 405 with Allow, under both roots', async () => {
  for (const root of ['/token-handler/v1', '/token-handler']) {
    expect((await call(`${handler.url}${root}/nothing`)).status).toBe(404);
    const answer = await call(`${handler.url}${root}/clients/x`, { method: 'DELETE' });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toMatch(/POST, PUT/);
  }
});

it('GET /health tells what the token handler depends on', async () => {
  expect((await call(`${handler.url}/health`)).body).toMatchObject({
    access: true,
    directory: true,
    tenant: true,
    configuration: true,
    db: true,
  });
});

it('it registers its configuration definition, role and event at the platform when it starts', async () => {
  await expect.poll(() => handler.log.text()).toContain('registered at the platform');
});

it('it is alive and ready on the metrics port, where its metrics are', async () => {
  expect((await fetch(`${handler.metricsUrl}/livez`)).status).toBe(200);
  expect((await fetch(`${handler.metricsUrl}/readyz`)).status).toBe(200);
  const metrics = await (await fetch(`${handler.metricsUrl}/metrics`)).text();
  expect(metrics).toContain('token_handler_registration_leftovers{kind="deletion"} 0');
});
