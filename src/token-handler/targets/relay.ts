// Relays one request to its upstream and the answer back, streamed both ways: what one side does not take is not read from
// the other. It reads no bodies, follows no redirects, and repeats a request only where nothing can have come of it.
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Request, Response } from 'express';
import type { Dispatcher } from 'undici';
import type { Metrics } from '../../service/metrics.ts';
import { Problem } from '../../service/problem.ts';
import { ownHeaders } from '../../service/request-context.ts';
import type { LiveSession } from '../sessions/live-session.ts';
import type { Connections, Lease } from './connections.ts';
import { endWith } from './last-piece.ts';
import type { PassingBuffers } from './passing-buffers.ts';
import { failureProblem, isRepeatable, lateProblem } from './relay-failure.ts';
import { lingerOver, outgoingBody, RequestBody } from './request-body.ts';
import type { HeaderList } from './request-headers.ts';
import { type AnswerHeaders, addOwn, answerHeaders, answerTrailers, isEventStream } from './response-headers.ts';
import type { Streams } from './streams.ts';
import { openTunnel } from './tunnel.ts';

export interface RelayOptions {
  connections: Connections;
  streams: Streams;
  buffers: PassingBuffers;
  metrics: Pick<Metrics, 'dependencyFailures'>;
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
 * Resolves when the answer is complete or the client has gone. Throws Problem `dependency-failed` for an upstream that
 * cannot be reached or breaks off, `dependency-timeout` for one that does not begin to answer in time, `unavailable` and
 * `too-many-requests` where it may not have another request or stream.
 */
export type Relay = (request: Request, response: Response, outgoing: Outgoing) => Promise<void>;

export function createRelay(options: RelayOptions): Relay {
  return (request, response, outgoing) => new Exchange(request, response, outgoing, options).run();
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: Request;
  readonly #response: Response;
  readonly #outgoing: Outgoing;
  readonly #options: RelayOptions;
  readonly #done = Promise.withResolvers<void>();
  #lease: Lease | undefined;
  #body: Buffer | RequestBody | null = null;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #endStream: (() => void) | undefined;
  #isOver = false;
  #isEvents = false;
  #hasBegun = false;
  #isLastTry = false;
  /** Bytes of the answer that are still to come; NaN where its length is unknown. */
  #remaining = Number.NaN;

  constructor(request: Request, response: Response, outgoing: Outgoing, options: RelayOptions) {
    this.#request = request;
    this.#response = response;
    this.#outgoing = outgoing;
    this.#options = options;
  }

  run(): Promise<void> {
    try {
      this.#prepare();
    } catch (error) {
      this.#finish();
      throw error;
    }
    this.#response.on('close', this.#onClientClose);
    this.#timer = setTimeout(this.#onLate, this.#options.firstByte);
    this.#dispatch();
    return this.#done.promise;
  }

  #prepare(): void {
    const { isStream, origin, session } = this.#outgoing;
    const { connections, streams, buffers } = this.#options;
    if (isStream) this.#endStream = streams.open(session, this.end);
    this.#lease = isStream ? connections.own(origin) : connections.share(origin);
    this.#body = outgoingBody(this.#request, buffers);
  }

  #dispatch(): void {
    const { path, headers, isUpgrade } = this.#outgoing;
    const { method } = this.#request;
    const options = { path, method, headers, body: this.#body, upgrade: isUpgrade ? 'websocket' : null };
    this.#lease?.dispatcher.dispatch(options, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('nobody waits for the answer'));
  }

  onBodySent(): void {
    this.#timer?.refresh();
  }

  onRequestSent(): void {
    this.#timer?.refresh();
  }

  onResponseStarted(): void {
    // The upstream has got the request, whatever becomes of the response.
    this.#isLastTry = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const response = this.#response;
    const answer = answerHeaders(headers, status, this.#request);
    if (status < 200) {
      if (this.#request.httpVersionMinor > 0) response.writeInformation(status, answer);
      return;
    }
    clearTimeout(this.#timer);
    const length = answer['content-length'];
    if (length !== undefined && this.#request.method !== 'HEAD') this.#remaining = Number(length);
    this.#followStream(answer);
    if (this.#body instanceof RequestBody && !this.#request.complete) response.shouldKeepAlive = false;
    addOwn(answer, ownHeaders(response), status);
    response.writeHead(status, answer);
    // A small answer comes with its head: one write for both. A slow one must not hold its head back.
    process.nextTick(this.#flushHead);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const response = this.#response;
    this.#hasBegun = true;
    this.#remaining -= chunk.length;
    this.#options.buffers.note(chunk.length);
    if (this.#remaining === 0) endWith(response, chunk);
    else if (!response.write(chunk)) {
      controller.pause();
      response.once('drain', () => controller.resume());
    }
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    const response = this.#response;
    if (!response.writableEnded) {
      const answer = answerTrailers(trailers);
      if (answer) response.addTrailers(answer as Record<string, string>);
      response.end();
    }
    this.#finish();
    lingerOver(this.#request);
    this.#done.resolve();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isOver) return;
    if (this.#mayRepeat(error)) {
      this.#isLastTry = true;
      this.#dispatch();
    } else this.#fail(failureProblem(error, this.#response.headersSent, this.#options.metrics));
  }

  onRequestUpgrade(_controller: unknown, status: number, headers: IncomingHttpHeaders, upstream: Duplex): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return void upstream.destroy();
    this.#keepOpen();
    openTunnel(this.#request, this.#response, { status, headers, upstream });
  }

  /** The session's end, for what is not over when it comes. */
  readonly end = (): void => {
    const response = this.#response;
    if (response.headersSent || response.statusCode === 101) {
      // Events have ends of their own; of anything else nobody should think that it is complete.
      if (this.#isEvents) response.end();
      else response.destroy();
      this.#onClientClose();
    } else {
      this.#fail(new Problem('unauthenticated', 'The session has ended.'));
      this.#controller?.abort(new Error('the session has ended'));
    }
  };

  readonly #flushHead = (): void => {
    if (!this.#hasBegun && !this.#isOver) this.#response.flushHeaders();
  };

  #followStream(answer: AnswerHeaders): void {
    const { session } = this.#outgoing;
    this.#isEvents = isEventStream(answer);
    if (this.#endStream || this.#isEvents) this.#keepOpen();
    if (this.#endStream) return;
    if (this.#isEvents) this.#endStream = this.#options.streams.open(session, this.end);
    else if (Number.isNaN(this.#remaining)) this.#endStream = this.#options.streams.watch(session, this.end);
  }

  /** A stream may be silent for long; that its client is gone shows at TCP's own probes. */
  #keepOpen(): void {
    const { socket } = this.#request;
    socket.setTimeout(0);
    socket.setKeepAlive(true, 60_000);
    this.#response.locals.began = performance.now();
  }

  readonly #onClientClose = (): void => {
    if (this.#isOver) return;
    this.#finish();
    this.#controller?.abort(new Error('nobody waits for the answer'));
    this.#done.resolve();
  };

  readonly #onLate = (): void => {
    if (this.#body instanceof RequestBody && this.#body.isStarved) return void this.#timer?.refresh();
    this.#fail(lateProblem(this.#options.metrics));
    this.#controller?.abort(new Error('late'));
  };

  #mayRepeat(error: Error): boolean {
    const isBare = this.#body === null && !this.#outgoing.isUpgrade;
    return isBare && !this.#isLastTry && !this.#response.headersSent && isRepeatable(this.#request.method, error);
  }

  #fail(problem: Problem): void {
    if (this.#isOver) return;
    this.#finish();
    this.#done.reject(problem);
    this.#response.once('finish', () => lingerOver(this.#request));
  }

  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#response.off('close', this.#onClientClose);
    this.#endStream?.();
    this.#lease?.release();
  }
}
