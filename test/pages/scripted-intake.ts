// Imitates the intake application by intercepting the browser's requests. Tests use it for many definitions, and for
// states that a real intake application reaches only after days. Its responses have the format of `/apply/api`.
import type { Page, Route } from 'playwright-core';

export interface ScriptedIntake {
  definition: Record<string, unknown>;
  entries?: readonly unknown[];
  /** The body of the response to `GET forms/{id}`; if undefined, the response is 401. By default, of the definition. */
  status?: Record<string, unknown> | undefined;
  /** Responses that replace the usual ones, keyed by method and last part of the path, such as `PUT data`. */
  answers?: Record<string, { status: number; body?: object; headers?: Record<string, string> }>;
  /** The body of the last save that the page sent. */
  saved?: unknown;
}

export const scriptedForm = '0d6b2c6e-51a4-4f0e-9f5e-7c1e3f0c8e2d';

/** Responds to all requests of the page to `/apply/api`. */
export async function scriptIntake(page: Page, script: ScriptedIntake): Promise<void> {
  let version = 1;
  const usual: Record<string, (route: Route) => { status: number; body?: object; etag?: string }> = {
    'GET entries': () => ({ status: 200, body: { entries: script.entries ?? [] } }),
    'POST forms': () => ({ status: 201, body: { id: scriptedForm, etag: '"1"' } }),
    'POST codes': () => ({ status: 202, body: { sent: true } }),
    'POST code-checks': () => ({ status: 204 }),
    'GET data': () => ({ status: 200, body: { data: {}, files: {} }, etag: `"${version}"` }),
    'PUT data': (route) => {
      script.saved = route.request().postDataJSON();
      version += 1;
      return { status: 200, body: {}, etag: `"${version}"` };
    },
    'POST submission': () => ({ status: 200, body: { number: 'K7QM-3XPD', submitted: '2026-08-20T12:00:00Z' } }),
    'POST files': (route) => ({
      status: 201,
      body: { urn: 'urn:example:platform:file-service:v1:/files/1', name: route.request().url() },
    }),
    'DELETE cookie': () => ({ status: 204 }),
  };
  await page.route('**/apply/api/**', async (route) => {
    const { pathname } = new URL(route.request().url());
    const [last = '', before = ''] = pathname.split('/').reverse();
    const name = `${route.request().method()} ${last}`;
    if (name.startsWith('GET') && before === 'definitions')
      return fulfil(route, { status: 200, body: script.definition });
    if (name.startsWith('GET') && before === 'forms')
      return fulfil(
        route,
        script.status?.id === last
          ? { status: 200, body: { definitionId: script.definition.id, ...script.status } }
          : { status: 401, body: {} },
      );
    return fulfil(route, script.answers?.[name] ?? usual[name]?.(route) ?? { status: 404, body: {} });
  });
}

interface Answer {
  status: number;
  body?: object;
  etag?: string;
  headers?: Record<string, string>;
}

function fulfil(route: Route, { status, body, etag, headers }: Answer): Promise<void> {
  return route.fulfill({
    status,
    headers: { 'Content-Type': 'application/json', ...(etag && { ETag: etag }), ...headers },
    body: body && status !== 204 ? JSON.stringify(body) : '',
  });
}
