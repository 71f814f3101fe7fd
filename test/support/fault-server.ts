// A real HTTP server on loopback that misbehaves as the test chooses: it hangs, resets connections, stops halfway, or
// announces a wrong length. It implements no particular API, and does not stand in for a platform service.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer } from './loopback-server.ts';

export interface ReceivedRequest {
  method: string;
  /** Path and query of the request. */
  target: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface FaultServer {
  url: string;
  port: number;
  requests: ReceivedRequest[];
  /** From the next request on, treats requests as `behaviour` says. */
  behave(behaviour: Behaviour): void;
  close(): Promise<void>;
}

/** Responds to a request, or misbehaves. `count` is the number of the request, beginning with 1. */
export type Behaviour = (response: ServerResponse, request: ReceivedRequest, count: number) => unknown;

/** Responds with `value` as JSON. */
export function answerJson(value: unknown, status = 200): Behaviour {
  return (response) => sendJson(response, value, status);
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** Accepts the request and never responds. */
export const hang: Behaviour = () => undefined;

/** Sends headers and half of the promised body, and nothing more. */
export const hangHalfway: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 }).write('{"half":');
};

/** Sends headers and half of the promised body, then resets the connection. */
export const resetHalfway: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 }).write('{"half":', () => {
    response.socket?.resetAndDestroy();
  });
};

/** Resets the connection instead of responding. */
export const reset: Behaviour = (response) => {
  response.socket?.resetAndDestroy();
};

/** Uses one of `behaviours` for each request, in their order, and the last one for all later requests too. */
export function inTurn(...behaviours: [Behaviour, ...Behaviour[]]): Behaviour {
  return (response, request, count) => {
    const behaviour = behaviours[Math.min(count, behaviours.length) - 1];
    return behaviour?.(response, request, count);
  };
}

/**
 * Starts a server on `port`, or on a free port. To simulate an outage, close a server and start another on the same
 * port.
 */
export async function startFaultServer(initial: Behaviour, port?: number): Promise<FaultServer> {
  let behaviour = initial;
  let count = 0;
  const requests: ReceivedRequest[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const received: ReceivedRequest = {
      method: request.method ?? '',
      target: request.url ?? '',
      headers: request.headers,
      body: await text(request),
    };
    requests.push(received);
    count += 1;
    await behaviour(response, received, count);
  };
  const server = createHttpServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  const listening = port ?? (await listenOnLowPort(server));
  if (port !== undefined) await listenAt(server, port);
  return {
    url: `http://127.0.0.1:${listening}`,
    port: listening,
    requests,
    behave(next) {
      behaviour = next;
      count = 0;
    },
    close: () => closeServer(server),
  };
}
