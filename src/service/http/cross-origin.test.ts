// Tests, over HTTP, which origins may call the routes that take a bearer token.
import { createServer, type Server } from 'node:http';
import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { allowOrigins } from './cross-origin.ts';

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

/** Starts a server that allows the given origins, and returns a function that sends it a request. */
async function allowing(...origins: string[]) {
  const app = express().use(allowOrigins(origins));
  app.use((_request, response) => void response.status(200).end('from the route'));
  const server = createServer(app);
  servers.push(server);
  const port = await listenOnLoopback(server);
  return async (headers: Record<string, string>, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}/`, { method, headers, signal: AbortSignal.timeout(5_000) });
    const ofCors = [...response.headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary');
    return { status: response.status, text: await response.text(), headers: Object.fromEntries(ofCors) };
  };
}

const app = 'https://app.example.ca';
const readable = {
  'access-control-expose-headers':
    'ETag, Location, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id',
};
const preflight = { Origin: app, 'Access-Control-Request-Method': 'PUT' };

describe('a page of another origin', () => {
  it('may read no response if no origin is allowed', async () => {
    const send = await allowing();
    expect(await send({ Origin: app })).toEqual({ status: 200, text: 'from the route', headers: {} });
    expect(await send(preflight, 'OPTIONS')).toMatchObject({ text: 'from the route', headers: {} });
  });

  it('may read responses if its origin is listed, and never sends credentials', async () => {
    const send = await allowing('https://other.example.ca', app);
    expect(await send({ Origin: app })).toEqual({
      status: 200,
      text: 'from the route',
      headers: { 'access-control-allow-origin': app, vary: 'Origin', ...readable },
    });
  });

  it.each(['https://evil.example', `${app}.evil.example`, 'http://app.example.ca', 'null', 'https://APP.example.ca'])(
    'may not read responses if its origin is not listed exactly: %s',
    async (origin) => {
      const send = await allowing(app);
      expect((await send({ Origin: origin })).headers).toEqual({ vary: 'Origin', ...readable });
      const asked = await send({ ...preflight, Origin: origin }, 'OPTIONS');
      expect(asked.headers['access-control-allow-origin']).toBeUndefined();
    },
  );

  it('may read responses from any origin if all are allowed, which caches may then share', async () => {
    const send = await allowing('*');
    expect((await send({ Origin: app })).headers).toEqual({ 'access-control-allow-origin': '*', ...readable });
    expect((await send(preflight, 'OPTIONS')).headers).toMatchObject({ 'access-control-allow-origin': '*' });
  });
});

describe('a preflight', () => {
  it('is answered without calling the route, and may be cached for ten minutes', async () => {
    const { status, text, headers } = await (await allowing(app))(preflight, 'OPTIONS');
    expect([status, text]).toEqual([204, '']);
    expect(headers).toMatchObject({ 'access-control-allow-origin': app, 'access-control-max-age': '600' });
    expect(headers['access-control-allow-methods']).toContain('PUT');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('is neither an OPTIONS request without the method that is asked for, nor another method with it', async () => {
    const send = await allowing(app);
    expect((await send({ Origin: app }, 'OPTIONS')).text).toBe('from the route');
    expect(await send(preflight, 'GET')).toMatchObject({ text: 'from the route', headers: readable });
  });
});

describe('a request without an origin', () => {
  it('gets no names of readable headers, and a note for caches that the response depends on the origin', async () => {
    expect((await (await allowing(app))({})).headers).toEqual({ vary: 'Origin' });
    expect((await (await allowing('*'))({})).headers).toEqual({ 'access-control-allow-origin': '*' });
  });
});
