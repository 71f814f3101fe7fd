// Defines the inputs of the proxy: the options for all requests, and the data of one outgoing request.
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
  /** Maximum time in milliseconds from sending the last part of the request until the upstream's response begins. */
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
 * Forwards a request. Resolves when the upstream has sent the whole response, when the client has closed the
 * connection, or when the proxy has ended a response that had begun. Throws one of these Problems:
 * - `dependency-failed`: the upstream cannot be reached, or broke off its response
 * - `dependency-timeout`: the upstream did not begin to respond in time
 * - `request-timeout`: the client sends the body too slowly
 * - `busy` or `too-many-requests`: a limit was reached
 * - `unauthenticated`: the session has ended
 * - `invalid-request`: the request has a header or a transfer coding that cannot be forwarded
 */
export type Forward = (request: IncomingMessage, response: HttpResponse, outgoing: Outgoing) => Promise<void>;
