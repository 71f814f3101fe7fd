// A proxy in front of a real API server. It forwards and records calls with the caller's token, and breaks chosen
// calls. It does not interpret calls.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { createHttpServer } from '../support/http-server.ts';
import { closeServer, listenOnLoopback } from '../support/loopback-server.ts';

export interface ApiCall {
  method: string;
  /** Path and query of the call. */
  url: string;
  contentType: string | undefined;
  body: string;
}

/** `hang`: no response; `reset`: the connection breaks; otherwise a response in the API server's format. */
export type ApiFault = 'hang' | 'reset' | { status: number; reason?: string; retryAfter?: number };

export interface ApiProxy {
  url: string;
  /** Number of connections to the proxy that were opened. */
  connections(): number;
  /** All calls, including broken ones. A test may empty the list. */
  calls: ApiCall[];
  /**
   * Sets the function that returns the fault of a call, or undefined to forward the call. Without a function, all calls
   * are forwarded.
   */
  breakWith(fault: ((call: ApiCall) => ApiFault | undefined) | undefined): void;
  close(): Promise<void>;
}

export async function startApiProxy(target: { server: string; ca: string | undefined }): Promise<ApiProxy> {
  const calls: ApiCall[] = [];
  let faultOf: ((call: ApiCall) => ApiFault | undefined) | undefined;
  const server = createHttpServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });

  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const { method = 'GET', url = '/', headers } = incoming;
    const call = { method, url, contentType: headers['content-type'], body: body.toString() };
    calls.push(call);
    const fault = faultOf?.(call);
    if (fault === 'hang') return;
    if (fault === 'reset') return void response.socket?.resetAndDestroy();
    if (fault) return sendFault(response, fault);
    await pass(target, incoming, body, response);
  }

  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    connections: () => connections,
    calls,
    breakWith(fault) {
      faultOf = fault;
    },
    close: () => closeServer(server),
  };
}

function sendFault(response: ServerResponse, { status, reason, retryAfter }: Exclude<ApiFault, string>): void {
  const headers = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code: status, reason }));
}

function pass(
  { server, ca }: { server: string; ca: string | undefined },
  incoming: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  const { host: _host, connection: _connection, 'transfer-encoding': _coding, ...headers } = incoming.headers;
  const base = server.replace(/\/+$/, '');
  return new Promise((resolve, reject) => {
    const outgoing = request(`${base}${incoming.url}`, {
      method: incoming.method,
      headers: { ...headers, 'content-length': body.length },
      ...(ca !== undefined && { ca }),
    });
    outgoing.once('error', reject);
    outgoing.once('response', (incoming) => {
      const { connection: _keep, 'transfer-encoding': _chunked, ...passed } = incoming.headers;
      response.writeHead(incoming.statusCode ?? 502, passed);
      incoming.pipe(response).once('finish', resolve).once('error', reject);
    });
    outgoing.end(body);
  });
}
