// Tests the pages of the problem types over HTTP.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { problemTypes } from '../http/problem-types.ts';
import { documentRoutes } from './openapi.ts';

let app: ListeningApp;
beforeAll(async () => {
  app = await startApp(documentRoutes({ title: 'Form service', version: '1', description: 'Drafts', routes: [] }));
});
afterAll(() => app.close());

const get = (path: string, accept?: string) => fetch(app.url + path, { headers: accept ? { accept } : {} });

describe('the page of a problem type', () => {
  it.each(Object.entries(problemTypes))('%s says what it means and what to do', async (slug, { status, title }) => {
    const response = await get(`/problems/${slug}`);
    const text = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    for (const part of [title, `HTTP status ${status}`, `urn:formgate:problem:${slug}`, 'What to do'])
      expect(text).toContain(part);
  });

  it('has no scripts, allows only its own stylesheet, and may be cached', async () => {
    const response = await get('/problems/form-locked', 'text/html,application/xhtml+xml,*/*;q=0.8');
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    expect(response.headers.get('cache-control')).toBe('max-age=300');
    expect(response.headers.get('vary')).toContain('Accept');
    expect(await response.text()).not.toContain('<script');
  });

  it('is JSON if Accept asks for it', async () => {
    const response = await get('/problems/stale', 'application/json');
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toEqual({ type: 'urn:formgate:problem:stale', ...problemTypes.stale });
  });

  it.each(['/problems/unheard-of', '/problems/constructor', '/problems/__proto__', '/problems/stale/more'])(
    'is a 404 problem at %s',
    async (path) => {
      const response = await get(path);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        404,
        'application/problem+json; charset=utf-8',
      ]);
    },
  );
});
