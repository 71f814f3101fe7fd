// Contenders of the proxy bench: what a Node program does that only relays. No session, no path rules, no limits, no log;
// each drops the hop-by-hop headers and streams, and that is all.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent as HttpAgent } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler } from 'express';
import expressHttpProxy from 'express-http-proxy';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Pool } from 'undici';
import { ownUsage } from './contender.ts';

export type RelayKind = 'undici' | 'http-proxy-middleware' | 'express-http-proxy';

export interface RelaySettings {
  kind: RelayKind;
  upstreamUrl: string;
  /** What stands before the path at the upstream. */
  prefix: string;
  connections: number;
}

let url = '';

process.on('message', async (message: { settings: RelaySettings } | 'url' | 'usage') => {
  if (message === 'usage') process.send?.(ownUsage());
  else if (message === 'url') process.send?.({ url });
  else {
    url = await start(message.settings);
    process.send?.({});
  }
});

async function start(settings: RelaySettings): Promise<string> {
  const app = express();
  // Its own error page would print every connection that the load generator drops.
  app.set('env', 'test');
  app.use(settings.prefix, handlers[settings.kind](settings));
  const server = app.listen(0, '127.0.0.1');
  // Between two turns; Node's 5 s would cut connections that are still in use by the other side's clock.
  server.keepAliveTimeout = 65_000;
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const handlers: Record<RelayKind, (settings: RelaySettings) => RequestHandler> = {
  undici: ({ upstreamUrl, connections }) => {
    const pool = new Pool(upstreamUrl, { connections });
    return (request, response, next) => {
      relay(pool, request, response).catch(next);
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

async function relay(pool: Pool, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const {
    host: _host,
    connection: _connection,
    'keep-alive': _alive,
    'transfer-encoding': _coding,
    ...headers
  } = request.headers;
  const hasBody = request.headers['content-length'] !== undefined || _coding !== undefined;
  const { method = 'GET', url: path = '/' } = request;
  await pool.stream({ method, path, headers, body: hasBody ? request : null, opaque: response }, (answer) => {
    const { connection: _hop, 'keep-alive': _kept, 'transfer-encoding': _chunked, ...rest } = answer.headers;
    return response.writeHead(answer.statusCode, rest);
  });
}
