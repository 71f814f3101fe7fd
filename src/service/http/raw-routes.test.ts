// Routes that take what comes as it was written.
import { afterEach, describe, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { createOpenApi } from '../openapi/openapi.ts';
import { anonymous, type Guard, route } from './http-app.ts';
import { Problem } from './problem.ts';
import { setOwnHeaders } from './request-context.ts';

let app: ListeningApp | undefined;
afterEach(() => app?.close());

const raw = (guards: Guard[] = [anonymous]) =>
  route({
    method: 'all',
    path: '/things/:thingId/*path',
    summary: 'Anything',
    guards,
    raw: true,
    answers: { 200: { description: 'What was asked' } },
    handle(_input, { method, url }, response) {
      setOwnHeaders(response);
      response.json([method, url]);
    },
  });
const refusingGuard: Guard = {
  name: 'refusing',
  admits: ['session'],
  check: () => {
    throw new Problem('forbidden', 'No.');
  },
};
const start = async (guards?: Guard[]) => {
  app = await startApp([raw(guards)], { corsOrigins: ['*'] });
  return app;
};
const send = async (line: string) => {
  const { port } = await start();
  return sendRaw(port, `${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
};

describe('a raw route', () => {
  it('takes any method and address below its path, undecoded', async () => {
    for (const line of ['PROPFIND /things/a/../b%2f%zz%00?c', 'GET /things/', 'OPTIONS /things/x//y']) {
      expect((await send(line)).body).toBe(JSON.stringify(line.split(' ')));
      await app?.close();
    }
  });

  it('takes an address in absolute form too, for it to refuse', async () => {
    expect((await send('GET http://evil.example/things/a')).body).toBe('["GET","http://evil.example/things/a"]');
  });

  it('refuses an address in absolute form that is no URL as any other, and goes on', async () => {
    const refusing = await start([refusingGuard]);
    for (const authority of ['a:99999', '[', 'a b']) {
      const request = `GET http://${authority}/things/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
      expect([400, 403]).toContain((await sendRaw(refusing.port, request)).status);
    }
    expect((await fetch(`${refusing.url}/things/a`)).status).toBe(403);
  });

  it('that fails before and after a wait is answered with the same problem', async () => {
    for (const wait of [false, true]) {
      const guard: Guard = {
        name: 'failing',
        admits: ['none'],
        check: () => {
          if (!wait) throw new Problem('forbidden', 'No.');
          return Promise.reject(new Problem('forbidden', 'No.'));
        },
      };
      const { url } = await start([anonymous, guard]);
      const response = await fetch(`${url}/things/a`);
      expect([response.status, await response.json()]).toMatchObject([403, { detail: 'No.', instance: '/things/a' }]);
      await app?.close();
    }
  });

  it('does not take other spellings of its path', async () => {
    for (const line of ['GET /Things/a', 'GET //things/a', 'GET /x/../things/a', 'GET /things']) {
      expect((await send(line)).status).toBe(404);
      await app?.close();
    }
  });

  it('passes its guards in order, and has the same problems, id and log line as any route', async () => {
    const { url, requestLines } = await start([refusingGuard]);
    const response = await fetch(`${url}/things/secret/x?y`);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      403,
      'application/problem+json; charset=utf-8',
    ]);
    expect(await requestLines(1)).toMatchObject([
      { route: '/things/:thingId/*path', status: 403, requestId: response.headers.get('x-request-id') },
    ]);
  });

  it('gets no cross-origin headers, and its preflights are its own', async () => {
    const { url } = await start();
    const headers = { Origin: 'https://a.example', 'Access-Control-Request-Method': 'PUT' };
    const response = await fetch(`${url}/things/x`, { method: 'OPTIONS', headers });
    expect(await response.json()).toEqual(['OPTIONS', '/things/x']);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('is in the document with every method', () => {
    const { paths } = createOpenApi({ title: 'x', version: '1', description: 'x', routes: [raw()] });
    const item = paths?.['/things/{thingId}/{path}'];
    expect(Object.keys(item ?? {})).toEqual(['get', 'post', 'put', 'patch', 'delete', 'head', 'options']);
  });
});
