// Responds to requests that Node's parser cannot read, and which therefore never reach the app. Node's own responses
// have no body, no log line and no metric.
import { randomUUID } from 'node:crypto';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { STATUS_CODES } from './node-http.ts';
import { Problem, problemBody } from './problem.ts';

export interface UnreadableOptions {
  log: Logger;
  metrics: Metrics;
  /** Returns the connection's newest response that has not been sent completely. */
  runningOn(socket: Socket): ServerResponse | undefined;
}

/** Milliseconds in which a client may send the rest of its request after the response. */
const longestRest = 5_000;

/**
 * Sends a problem for each request that cannot be read, and closes its connection. The rest of the request is discarded
 * first: a reset of the connection could lose the response (RFC 9112 section 9.6).
 */
export function serveUnreadable(server: Server, { log, metrics, runningOn }: UnreadableOptions): void {
  const refused = new WeakSet<Socket>();
  server.on('clientError', (error: NodeJS.ErrnoException, duplex: Duplex) => {
    const socket = duplex as Socket;
    // The parser reports each further piece of the request.
    if (refused.has(socket)) return;
    const running = runningOn(socket);
    // Other bytes on the connection would corrupt a response that has begun, or that follows another one.
    const isMidway = running !== undefined && (running.headersSent || running.socket !== socket);
    if (error.code === 'ECONNRESET' || !socket.writable || isMidway) return void socket.destroy(error);
    const problem = problemOf(error.code);
    metrics.http.record({ method: 'other', route: 'unreadable', status: problem.status, seconds: 0 });
    const requestId = randomUUID();
    log.info({ status: problem.status, code: error.code, requestId }, 'unreadable request');
    refused.add(socket);
    socket.end(textOf(problem, requestId));
    const timer = setTimeout(() => socket.destroy(), longestRest).unref();
    socket.once('close', () => clearTimeout(timer));
  });
}

function problemOf(code: string | undefined): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return new Problem('headers-too-large');
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new Problem('body-too-large', 'The chunk extensions are too large.');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Problem('request-timeout', 'The request arrived too slowly.');
  return new Problem('invalid-request', 'The request is not valid HTTP/1.1.');
}

function textOf(problem: Problem, requestId: string): string {
  const body = JSON.stringify(problemBody(problem, '/'));
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...['Cache-Control: no-store', 'X-Content-Type-Options: nosniff', 'Connection: close'],
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
