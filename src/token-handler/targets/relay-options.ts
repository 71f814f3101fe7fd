// What the proxy is given: for all requests, and for each one. Types only.
import type { Request, Response } from 'express';
import type { LiveSession } from '../sessions/live-session.ts';
import type { Connections } from './connections.ts';
import type { BodyBuffers } from './request-body.ts';
import type { HeaderList } from './request-headers.ts';
import type { Streams } from './streams.ts';
import type { TargetMetrics } from './target-metrics.ts';
import type { TransferRate } from './transfer-rate.ts';

export interface RelayOptions {
  connections: Connections;
  streams: Streams;
  rate: TransferRate;
  bodies: BodyBuffers;
  metrics: TargetMetrics;
  /** Milliseconds that an upstream may take, once it can answer, to begin. */
  firstByte: number;
}

export interface Outgoing {
  /** Of the upstream. */
  origin: string;
  /** With the query. */
  path: string;
  headers: HeaderList;
  /** Asks for an upgrade to the WebSocket protocol. */
  isUpgrade: boolean;
  /** Will last, as far as can be told before the answer. */
  isStream: boolean;
  session: LiveSession;
}

/**
 * Resolves when the response is complete or the client has gone. Throws Problem `dependency-failed` for an upstream that
 * cannot be reached or breaks off, `dependency-timeout` for one that does not begin to respond in time, `request-timeout`
 * for a body that the client sends too slowly, `busy` and `too-many-requests` where the request exceeds a limit.
 */
export type Relay = (request: Request, response: Response, outgoing: Outgoing) => Promise<void>;
