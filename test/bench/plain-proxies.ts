// Contenders of the proxy bench: Node programs that only proxy. They have no sessions, path rules, limits or logs. They
// drop hop-by-hop headers and stream bodies.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent as HttpAgent } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler } from 'express';
import expressHttpProxy from 'express-http-proxy';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Pool } from 'undici';
import { ownUsage } from './contender.ts';

export type ProxyKind = 'undici' | 'http-proxy-middleware' | 'express-http-proxy';

export interface ProxySettings {
  kind: ProxyKind;
  upstreamUrl: string;
  /** Path prefix of the proxied requests. The contender removes it from the path that it requests from the upstream. */
  prefix: string;
  connections: number;
}

let url = '';

process.on('message', async (message: { settings: ProxySettings } | 'url' | 'usage') => {
  if (message === 'usage') process.send?.(ownUsage());
  else if (message === 'url') process.send?.({ url });
  else {
    url = await start(message.settings);
    process.send?.({});
  }
});

async function start(settings: ProxySettings): Promise<string> {
  const app = express();
  // With the environment `test`, Express's default error handler does not print an error for each connection that the
  // load generator drops.
  app.set('env', 'test');
  app.use(settings.prefix, handlers[settings.kind](settings));
  const server = app.listen(0, '127.0.0.1');
  // The timeout is longer than the pause between two turns of a contender. With Node's default of 5 s, the server would
  // close connections that the load generator uses again.
  server.keepAliveTimeout = 65_000;
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const handlers: Record<ProxyKind, (settings: ProxySettings) => RequestHandler> = {
  undici: ({ upstreamUrl, connections }) => {
    const pool = new Pool(upstreamUrl, { connections });
    return (request, response, next) => {
      forward(pool, request, response).catch(next);
    };
  },
  'http-proxy-middleware': ({ upstreamUrl, connections }) =>
    createProxyMiddleware({
      target: upstreamUrl,
      changeOrigin: true,
      agent: new HttpAgent({ keepAlive: true, maxSockets: connections }),
    }) as unknown as RequestHandler,
  'express-http-proxy': ({ upstreamUrl }) => expressHttpProxy(upstreamUrl, { parseReqBody: false }),
};

async function forward(pool: Pool, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const {
    host: _host,
    connection: _connection,
    'keep-alive': _alive,
    'transfer-encoding': _coding,
    ...headers
  } = request.headers;
  const hasBody = request.headers['content-length'] !== undefined || _coding !== undefined;
  const { method = 'GET', url: path = '/' } = request;
  await pool.stream({ method, path, headers, body: hasBody ? request : null, opaque: response }, (upstream) => {
    const { connection: _hop, 'keep-alive': _kept, 'transfer-encoding': _chunked, ...rest } = upstream.headers;
    return response.writeHead(upstream.statusCode, rest);
  });
}
