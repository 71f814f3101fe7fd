// A proxy between a real client and a real HTTP service. It forwards every call unchanged and records it. A test can
// shut the proxy, which then looks like a stopped service, and open it again. It works for any API and causes no other
// faults.
import { type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer } from './loopback-server.ts';

export interface Exchange {
  method: string;
  /** Path and query of the request. */
  target: string;
  /** Headers of the request. */
  headers: IncomingHttpHeaders;
  body: string;
  status: number;
  answer: string;
}

export interface HttpTap {
  url: string;
  /** Completed calls, in the order of their responses. */
  exchanges: Exchange[];
  /** Stops listening and closes open connections. */
  shut(): Promise<void>;
  /** Listens again after `shut`. Does nothing if the tap already listens. */
  open(): Promise<void>;
  close(): Promise<void>;
}

export async function startHttpTap(target: string): Promise<HttpTap> {
  const exchanges: Exchange[] = [];
  const server = createHttpServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const shut = () => closeServer(server);
  const port = await listenOnLowPort(server);

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const answer = await pass(`${target}${incoming.url}`, incoming, body);
    const bytes = await buffer(answer);
    const status = answer.statusCode ?? 502;
    const { method = '', url = '', headers: sent } = incoming;
    const [asked, answered] = [body.toString('utf8'), bytes.toString('utf8')];
    exchanges.push({ method, target: url, headers: sent, body: asked, status, answer: answered });
    const { 'transfer-encoding': _chunked, connection: _kept, 'keep-alive': _alive, ...headers } = answer.headers;
    response.writeHead(status, { ...headers, 'content-length': bytes.length }).end(bytes);
  }

  return {
    url: `http://127.0.0.1:${port}`,
    exchanges,
    shut,
    open: () => (server.listening ? Promise.resolve() : listenAt(server, port)),
    close: shut,
  };
}

function pass(url: string, incoming: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { host: _host, connection: _connection, 'transfer-encoding': _chunked, ...headers } = incoming.headers;
    const outgoing = request(url, {
      method: incoming.method,
      headers: { ...headers, 'content-length': body.length },
    });
    outgoing.once('error', reject);
    outgoing.once('response', resolve);
    outgoing.end(body);
  });
}
