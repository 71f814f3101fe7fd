// Defines the inputs of the proxy: its options for all requests, and the data of one request.
import type { IncomingMessage } from 'node:http';
import type { HttpResponse } from '../../service/http/request-context.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { LiveSession } from '../sessions/session.ts';
import type { BodyBuffers } from './bodies.ts';
import type { Connections } from './connections.ts';
import type { HeaderList } from './request-headers.ts';
import type { Streams } from './streams.ts';
import type { TargetMetrics } from './target-metrics.ts';
import type { TransferRate } from './transfer-rate.ts';

export type ProxyMetrics = Pick<TargetMetrics, 'aborted' | 'slowBodies' | 'upstreamDuration'> &
  Pick<Metrics, 'dependencyFailures'>;

export interface ProxyOptions {
  connections: Connections;
  streams: Streams;
  rate: TransferRate;
  bodies: BodyBuffers;
  metrics: ProxyMetrics;
  /** Milliseconds that an upstream may take to begin its response after it received the request. */
  firstByte: number;
}

export interface Outgoing {
  method: string;
  /** Origin of the upstream. */
  origin: string;
  /** Path and query at the upstream. */
  path: string;
  headers: HeaderList;
  /** True if the client requests an upgrade to the WebSocket protocol. */
  isUpgrade: boolean;
  /** True if the client requests an upgrade or an event stream, which may last for hours. */
  isStream: boolean;
  session: LiveSession;
}

/**
 * Resolves when the response is complete or the client has closed the connection. Throws Problem `dependency-failed` if
 * the upstream cannot be reached or breaks off its response, `dependency-timeout` if it does not begin to respond in
 * time, `request-timeout` if the client sends the body too slowly, and `busy` or `too-many-requests` if a limit is
 * reached.
 */
export type Forward = (request: IncomingMessage, response: HttpResponse, outgoing: Outgoing) => Promise<void>;
