// Tests, over real HTTP, how an app that is built from a route table handles requests.
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import type { AuditAction } from '../operations/audit-actions.ts';
import type { RouteAudit } from '../operations/request-audit.ts';
import { outsideRequests } from '../operations/request-scope.ts';
import { parseTrustedProxies, type TrustedProxies } from './client-address.ts';
import { anonymous, type Guard, type HttpAppOptions, isGuarded, type Route, route } from './http-app.ts';
import { Problem } from './problem.ts';

let app: ListeningApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(routes: Route[], overrides: Partial<HttpAppOptions> = {}): Promise<ListeningApp> {
  app = await startApp(routes, overrides);
  return app;
}

const refuse = (slug: 'unauthenticated' | 'forbidden'): Guard => ({
  name: 'refuse',
  admits: ['session'],
  check: () => {
    throw new Problem(slug);
  },
});

interface Extra {
  method?: 'get' | 'post' | 'put' | 'delete';
  path?: string;
  guards?: Guard[];
  handle?: Route['handle'];
  audit?: RouteAudit<never>;
}

function plain({ method = 'get', path = '/things/:id', guards = [anonymous], handle, ...rest }: Extra = {}): Route {
  return route({
    method,
    path,
    guards,
    summary: 'A thing',
    responses: { 200: { description: 'The thing' } },
    ...rest,
    handle: handle ?? ((_input, request, response) => void response.json({ id: request.params.id })),
  });
}

const withBody = (guards: Guard[]) =>
  route({
    method: 'put',
    path: '/things/:id',
    summary: 'Replaces a thing',
    guards,
    params: z.object({ id: z.uuid() }),
    query: z.strictObject({ top: z.coerce.number().int().max(100).optional() }),
    body: z.strictObject({ name: z.string() }),
    responses: { 200: { description: 'Fine' } },
    handle: ({ params, query, body }, _request, response) => void response.json({ params, query, body }),
  });

const json = { 'Content-Type': 'application/json' };
const uuid = '0198c8a8-7d1c-7000-8000-000000000001';

describe('the order of a request', () => {
  it('checks the guards before the body: 401 precedes 400, 413 and 415', async () => {
    const { url } = await start([withBody([refuse('unauthenticated')])], { bodyLimit: 1_024 });
    for (const [body, headers] of [
      ['{', json],
      [`"${'a'.repeat(2_000)}"`, json],
      ['x', { 'Content-Type': 'text/plain' }],
    ] as const)
      expect((await fetch(`${url}/things/no-uuid?top=x`, { method: 'PUT', body, headers })).status).toBe(401);
  });

  it('returns 401 without waiting for a body that never arrives', async () => {
    const { port } = await start([withBody([refuse('unauthenticated')])]);
    const head = `PUT /things/1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`;
    expect((await sendRaw(port, head)).status).toBe(401);
  });

  it('checks the guards in order and stops at the first that rejects the request', async () => {
    const asked: string[] = [];
    const note = (name: string): Guard => ({
      name,
      check: async () => {
        await delay(5);
        asked.push(name);
      },
    });
    const { url } = await start([
      plain({ guards: [note('first'), note('second'), refuse('forbidden'), note('third')] }),
    ]);
    expect((await fetch(`${url}/things/1`)).status).toBe(403);
    expect(asked).toEqual(['first', 'second']);
  });

  it('returns one 400 that lists every invalid field of params, query and body', async () => {
    const { url } = await start([withBody([anonymous])]);
    const body = JSON.stringify({ name: 1, more: true });
    const response = await fetch(`${url}/things/no-uuid?top=200&bottom=1`, { method: 'PUT', headers: json, body });
    const problem = (await response.json()) as { errors: { pointer: string }[] };
    expect(response.status).toBe(400);
    expect(problem.errors.map(({ pointer }) => pointer)).toEqual([
      '/params/id',
      '/query/top',
      '/query/bottom',
      '/name',
      '/more',
    ]);
  });

  it('passes the parsed params, query and body to the handler', async () => {
    const { url } = await start([withBody([anonymous])]);
    const response = await fetch(`${url}/things/${uuid}?top=7`, { method: 'PUT', headers: json, body: '{"name":"a"}' });
    expect(await response.json()).toEqual({ params: { id: uuid }, query: { top: 7 }, body: { name: 'a' } });
  });
});

describe('a URL', () => {
  it('without a route gets 404 for every method', async () => {
    const { url } = await start([plain()]);
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      expect((await fetch(`${url}/nothing`, { method })).status).toBe(404);
  });

  it('gets 405 with Allow for a method that it does not support', async () => {
    const { url } = await start([plain(), plain({ method: 'put' })]);
    for (const method of ['POST', 'DELETE', 'PATCH']) {
      const response = await fetch(`${url}/things/1`, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, PUT, HEAD, OPTIONS']);
      expect(await response.json()).toMatchObject({ type: 'urn:formgate:problem:method-not-allowed', status: 405 });
    }
  });

  it('gets HEAD like GET without a body, and 405 if there is no GET', async () => {
    const { url } = await start([plain(), plain({ method: 'put', path: '/other' })]);
    const head = await fetch(`${url}/things/1`, { method: 'HEAD' });
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', '10']);
    expect((await fetch(`${url}/other`, { method: 'HEAD' })).status).toBe(405);
  });

  it('gets 405 for HEAD before any guard, if its GET has effects', async () => {
    const withEffects = { ...plain({ guards: [refuse('forbidden')] }), getHasEffects: true as const };
    const { url } = await start([withEffects, plain({ method: 'put' })]);
    for (const method of ['HEAD', 'POST']) {
      const response = await fetch(`${url}/things/1`, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, PUT, OPTIONS']);
    }
    expect((await fetch(`${url}/things/1`)).status).toBe(403);
  });

  it('returns Allow for OPTIONS', async () => {
    const { url } = await start([plain(), plain({ method: 'delete' })], { corsOrigins: ['*'] });
    const response = await fetch(`${url}/things/1`, { method: 'OPTIONS' });
    expect([response.status, response.headers.get('allow')]).toEqual([204, 'GET, DELETE, HEAD, OPTIONS']);
  });

  it('with a malformed percent-encoding gets 400', async () => {
    const { port } = await start([plain()]);
    for (const path of ['/things/%', '/things/%zz', '/things/%ff', '/things/%c0%af']) {
      const { status, body } = await sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      expect([path, status]).toEqual([path, 400]);
      expect(JSON.parse(body)).toMatchObject({ errors: [{ pointer: '/params' }] });
    }
  });

  it('with a NUL in path or query gets 400', async () => {
    const { url } = await start([plain()]);
    expect((await fetch(`${url}/things/a%00b`)).status).toBe(400);
    expect((await fetch(`${url}/things/a?b=%00`)).status).toBe(400);
  });

  it('with a repeated query parameter gets 400 with its pointer', async () => {
    const { url } = await start([withBody([anonymous])]);
    const response = await fetch(`${url}/things/${uuid}?top=1&top=2`, {
      method: 'PUT',
      headers: json,
      body: '{"name":"a"}',
    });
    expect([response.status, await response.json()]).toMatchObject([400, { errors: [{ pointer: '/query/top' }] }]);
  });

  it('never causes a 500, whatever its request target', async () => {
    const { port } = await start([plain()]);
    for (const target of [
      '*',
      '//',
      '//things/1',
      'http://elsewhere/things/1',
      '/things/..',
      '/things/1?%',
      '/?__proto__[a]=1',
      `/${'a'.repeat(8_000)}`,
    ]) {
      const { status } = await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      expect([target, status < 500]).toEqual([target, true]);
    }
  });
});

describe('a problem', () => {
  it('is application/problem+json with errorMessage equal to detail and instance without the query', async () => {
    const { url } = await start([plain({ guards: [refuse('forbidden')] })]);
    const response = await fetch(`${url}/things/1?code=ABC123`);
    expect(response.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    const problem = (await response.json()) as Record<string, unknown>;
    expect(problem).toEqual({
      type: 'urn:formgate:problem:forbidden',
      title: 'The caller may not do this',
      status: 403,
      detail: 'The caller may not do this.',
      instance: '/things/1',
      errorMessage: 'The caller may not do this.',
    });
  });

  it('is a bare 500 for an unexpected error, with the cause only in the log', async () => {
    const handle = () => {
      throw new TypeError('canary of the inside', { cause: new Error('the root of it') });
    };
    const { url, requestLines } = await start([plain({ handle })]);
    const response = await fetch(`${url}/things/1`);
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(JSON.parse(text)).toEqual({
      type: 'urn:formgate:problem:internal',
      title: 'The service failed',
      status: 500,
      detail: 'The service failed.',
      instance: '/things/1',
      errorMessage: 'The service failed.',
    });
    expect((await requestLines(1))[0]).toMatchObject({
      level: 'error',
      status: 500,
      err: { type: 'TypeError', message: 'canary of the inside', cause: { message: 'the root of it' } },
    });
  });

  it('is a 500 if a value is thrown that is not an Error', async () => {
    const thrown: unknown[] = [undefined, null, 'text', 0, {}];
    const handle = () => Promise.reject(thrown.shift());
    const { url } = await start([plain({ handle })]);
    for (let count = 0; count < 5; count += 1) expect((await fetch(`${url}/things/1`)).status).toBe(500);
  });

  it('closes the connection if the response has begun, and is logged as 500', async () => {
    const handle: Route['handle'] = async (_input, _request, response) => {
      response.write('half');
      await delay(20);
      throw new Error('too late');
    };
    const { url, requestLines, text } = await start([plain({ handle })]);
    await expect(fetch(`${url}/things/1`).then((response) => response.text())).rejects.toThrow();
    expect((await requestLines(1))[0]).toMatchObject({ status: 500, err: { message: 'too late' } });
    expect(text()).not.toContain('half');
  });
});

describe('every response', () => {
  it('has the X-Request-Id of the request if that is valid and from a trusted proxy, else a new one', async () => {
    const { url, requestLines } = await start([plain()], { trustedProxies: ['loopback'] });
    const ask = async (id?: string) =>
      (await fetch(`${url}/things/1`, { headers: id ? { 'X-Request-Id': id } : {} })).headers.get('x-request-id');
    expect(await ask('abc-123_x.y')).toBe('abc-123_x.y');
    const made = [await ask(), await ask('"quoted"'), await ask('a'.repeat(65))];
    for (const id of made) expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect((await requestLines(4)).map(({ requestId }) => requestId)).toEqual(['abc-123_x.y', ...made]);
    await app?.close();
    const direct = await start([plain()], { trustedProxies: ['10.0.0.0/8'] });
    const headers = { 'X-Request-Id': 'abc-123_x.y' };
    expect((await fetch(`${direct.url}/things/1`, { headers })).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('and each log line of its code, however deep, has the id and the trace of the request', async () => {
    const handle: Route['handle'] = async (_input, request, response) => {
      await delay(Number(request.params.id));
      deep.log.warn('deep');
      await new Promise((resolve) => setTimeout(resolve, 5));
      deep.log.warn({ a: 1 }, 'deeper');
      outsideRequests(() => deep.log.warn('outside'));
      response.end();
    };
    const deep = captureLog();
    const { url } = await start([plain({ handle })], { log: deep.log });
    const answers = await Promise.all([20, 1, 10].map((wait) => fetch(`${url}/things/${wait}`)));
    await expect.poll(() => deep.lines().filter(({ msg }) => msg === 'request')).toHaveLength(3);
    for (const id of answers.map(({ headers }) => headers.get('x-request-id'))) {
      const own = deep.lines().filter(({ requestId }) => requestId === id);
      const traceId = id?.replaceAll('-', '');
      expect(own.map(({ msg }) => msg)).toEqual(['deep', 'deeper', 'request']);
      for (const line of own) expect(line.traceId).toBe(traceId);
    }
    const outside = deep.lines().filter(({ msg }) => msg === 'outside');
    expect(outside).toHaveLength(3);
    for (const line of outside) expect(Object.keys(line)).not.toContain('requestId');
  });

  it('has the id on 404 and 500 too, and forbids storing and sniffing', async () => {
    const handle = () => {
      throw new Error('x');
    };
    const { url } = await start([plain({ handle })]);
    for (const path of ['/nothing', '/things/1']) {
      const { headers } = await fetch(url + path);
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff']);
      expect(headers.has('x-powered-by')).toBe(false);
    }
  });

  it('honours a valid traceparent and ignores any other', async () => {
    const seen: unknown[] = [];
    const handle: Route['handle'] = (_input, _request, response) => {
      seen.push(response.locals.traceparent);
      response.end();
    };
    const { url, lines } = await start([plain({ handle })]);
    const valid = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const given = [valid, 'x', valid.toUpperCase(), `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, `${valid}-more`];
    for (const traceparent of given) await fetch(`${url}/things/1`, { headers: { traceparent } });
    expect(seen).toEqual([valid, undefined, undefined, undefined, undefined]);
    const logged = lines().filter(({ msg }) => msg === 'request');
    expect(logged[0]).toMatchObject({ traceId: valid.slice(3, 35), requestId: expect.any(String) });
    for (const { traceId, requestId } of logged.slice(1)) expect(traceId).toBe(String(requestId).replaceAll('-', ''));
  });
});

describe('the client address', () => {
  async function addressSeen(trustedProxies: TrustedProxies | undefined, forwarded: string): Promise<string> {
    const handle: Route['handle'] = (_input, request, response) =>
      void response.json(`${request.protocol} ${request.ip}`);
    const { url, close } = await startApp([plain({ handle })], { trustedProxies: trustedProxies ?? 0 });
    const headers = { 'X-Forwarded-For': forwarded, 'X-Forwarded-Proto': 'https' };
    const seen = await fetch(`${url}/things/1`, { headers });
    const text = (await seen.json()) as string;
    await close();
    return text;
  }

  it('is read from the right of X-Forwarded-For by the number of trusted hops', async () => {
    const list = '203.0.113.9, 198.51.100.7, 10.0.0.3';
    expect(await addressSeen(parseTrustedProxies('1'), list)).toBe('https 10.0.0.3');
    expect(await addressSeen(parseTrustedProxies('2'), list)).toBe('https 198.51.100.7');
    expect(await addressSeen(parseTrustedProxies('9'), list)).toBe('https 203.0.113.9');
  });

  it('is the first from the right outside the trusted CIDRs', async () => {
    const list = '203.0.113.9, 198.51.100.7, 10.0.0.3';
    expect(await addressSeen(parseTrustedProxies('loopback, 10.0.0.0/8'), list)).toBe('https 198.51.100.7');
    expect(await addressSeen(parseTrustedProxies('loopback'), list)).toBe('https 10.0.0.3');
    expect(await addressSeen(parseTrustedProxies('127.0.0.1,10.0.0.0/8,198.51.100.7'), list)).toBe('https 203.0.113.9');
  });

  it('is that of the connection if the peer is not trusted, and X-Forwarded-Proto is ignored', async () => {
    expect(await addressSeen(parseTrustedProxies('0'), '203.0.113.9')).toBe('http 127.0.0.1');
    expect(await addressSeen(parseTrustedProxies('10.0.0.0/8,fd00::/8'), '203.0.113.9')).toBe('http 127.0.0.1');
  });

  it('the app accepts every setting that the configuration accepts', async () => {
    const texts = [
      '0',
      '1',
      'loopback',
      'linklocal,uniquelocal',
      '10.0.0.0/8',
      '::1',
      'fd00::/8',
      '::ffff:10.0.0.0/104',
      '1.2.3.4/32',
      '::/1',
    ];
    for (const text of texts) {
      const parsed = parseTrustedProxies(text);
      expect([text, parsed]).not.toContain(undefined);
      expect(await addressSeen(parsed, '203.0.113.9')).toMatch(/^https? /);
    }
    for (const text of [
      '',
      '-1',
      '100',
      '10.0.0.0/0',
      '10.0.0.0/33',
      '::ffff:10.0.0.0/96',
      '::/129',
      'fe80::1%eth0',
      '10.0.0',
      'proxy',
      'true',
      '1,loopback',
      '10.0.0.0/8/8',
    ])
      expect([text, parseTrustedProxies(text)]).toEqual([text, undefined]);
  });
});

describe('cross-origin calls', () => {
  const preflight = {
    Origin: 'https://forms.example.org',
    'Access-Control-Request-Method': 'PUT',
    'Access-Control-Request-Headers': 'authorization,content-type',
  };

  it('are allowed from the configured origins, never with credentials', async () => {
    const { url } = await start([plain()], { corsOrigins: ['https://forms.example.org', 'https://other.example.org'] });
    const allowed = await fetch(`${url}/things/1`, { headers: { Origin: 'https://forms.example.org' } });
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://forms.example.org');
    expect(allowed.headers.get('vary')).toContain('Origin');
    expect(allowed.headers.get('access-control-expose-headers')).toContain('ETag');
    expect(allowed.headers.has('access-control-allow-credentials')).toBe(false);
    const denied = await fetch(`${url}/things/1`, { headers: { Origin: 'https://evil.example.org' } });
    expect(denied.headers.has('access-control-allow-origin')).toBe(false);
  });

  it('have a preflight that needs no token', async () => {
    const { url } = await start([plain({ method: 'put', guards: [refuse('unauthenticated')] })], {
      corsOrigins: ['*'],
    });
    const response = await fetch(`${url}/things/1`, { method: 'OPTIONS', headers: preflight });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-allow-methods')).toContain('PUT');
    expect(response.headers.get('access-control-allow-headers')).toBe('authorization,content-type');
    expect(response.headers.has('access-control-allow-credentials')).toBe(false);
  });

  it('are allowed on errors too, so that a page can read the reason', async () => {
    const { url } = await start([plain({ guards: [refuse('unauthenticated')] })], { corsOrigins: ['*'] });
    const response = await fetch(`${url}/things/1`, { headers: { Origin: 'https://forms.example.org' } });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([401, '*']);
  });

  it('are not allowed if no origin is configured', async () => {
    const { url } = await start([plain()]);
    const response = await fetch(`${url}/things/1`, { method: 'OPTIONS', headers: preflight });
    expect(response.headers.has('access-control-allow-origin')).toBe(false);
  });
});

describe('the record of a request', () => {
  it('counts into the histogram by method, route pattern and status, never by path', async () => {
    const { url, metrics, requestLines } = await start([plain()]);
    await fetch(`${url}/things/canary-id?code=canary-code`);
    await fetch(`${url}/canary-path`);
    await requestLines(2);
    const text = await metrics.registry.metrics();
    expect(text).toContain('formgate_http_requests_total{method="GET",route="/things/:id",status="2xx"} 1');
    expect(text).toContain('formgate_http_requests_total{method="GET",route="unmatched",status="4xx"} 1');
    expect(text).not.toContain('canary');
  });

  it('is 499 if the client disconnects before the response', async () => {
    const begun = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const handle: Route['handle'] = async (_input, _request, response) => {
      response.once('close', left.resolve);
      begun.resolve();
      await left.promise;
      response.json('late');
    };
    const { url, requestLines, metrics } = await start([plain({ handle })]);
    const controller = new AbortController();
    const answered = fetch(`${url}/things/1`, { signal: controller.signal });
    await begun.promise;
    controller.abort();
    await expect(answered).rejects.toThrow();
    expect((await requestLines(1))[0]).toMatchObject({ status: 499, level: 'info', route: '/things/:id' });
    expect(await metrics.registry.metrics()).toContain('status="4xx"} 1');
  });

  it('counts an unknown method without a route', async () => {
    const { url, requestLines } = await start([plain()]);
    await fetch(`${url}/things/1`, { method: 'PROPFIND' });
    expect((await requestLines(1))[0]).toMatchObject({ method: 'PROPFIND', route: 'unmatched', status: 405 });
  });
});

describe('a route', () => {
  it('is unguarded without a guard that admits callers, such as bearer or anonymous', () => {
    const check = () => undefined;
    expect(isGuarded(plain({ guards: [] }))).toBe(false);
    expect(isGuarded(plain({ guards: [{ name: 'role(x)', check }] }))).toBe(false);
    expect(isGuarded(plain({ guards: [{ name: 'session', admits: ['session'], check }] }))).toBe(true);
    expect(isGuarded(plain({ guards: [anonymous] }))).toBe(true);
  });

  it('that is unguarded prevents the creation of the app', async () => {
    await expect(start([plain(), plain({ method: 'put', guards: [] })])).rejects.toThrow(
      'no guard admits callers to PUT /things/:id',
    );
  });

  it('whose audit action is not in the catalogue prevents the creation of the app', async () => {
    const misspelt = 'form.misspelt' as AuditAction;
    const actions = ['form.create', misspelt] as const;
    const message = 'audit-actions.ts lacks the action form.misspelt of /things/:id';
    await expect(start([plain({ method: 'put', audit: { actions } })])).rejects.toThrow(message);
    await expect(start([plain({ method: 'put', audit: misspelt })])).rejects.toThrow(message);
  });
});
