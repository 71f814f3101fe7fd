// The inputs of the proxy: for all requests, and for each request. Types only.
import type { IncomingMessage } from 'node:http';
import type { HttpResponse } from '../../service/http/request-context.ts';
import type { LiveSession } from '../sessions/session.ts';
import type { BodyBuffers } from './bodies.ts';
import type { Connections } from './connections.ts';
import type { HeaderList } from './request-headers.ts';
import type { Streams } from './streams.ts';
import type { TargetMetrics } from './target-metrics.ts';
import type { TransferRate } from './transfer-rate.ts';

export interface ProxyOptions {
  connections: Connections;
  streams: Streams;
  rate: TransferRate;
  bodies: BodyBuffers;
  metrics: TargetMetrics;
  /** Milliseconds that an upstream may take to begin its response after it got the request. */
  firstByte: number;
}

export interface Outgoing {
  method: string;
  /** Of the upstream. */
  origin: string;
  /** With the query. */
  path: string;
  headers: HeaderList;
  /** Asks for an upgrade to the WebSocket protocol. */
  isUpgrade: boolean;
  /** The request asks for an upgrade or an event stream, which may last for hours. */
  isStream: boolean;
  session: LiveSession;
}

/**
 * Resolves when the response is complete or the client has gone. Throws Problem `dependency-failed` for an upstream that
 * cannot be reached or breaks off, `dependency-timeout` for one that does not begin to respond in time, `request-timeout`
 * for a body that the client sends too slowly, `busy` and `too-many-requests` if the request exceeds a limit.
 */
export type Forward = (request: IncomingMessage, response: HttpResponse, outgoing: Outgoing) => Promise<void>;
