// Proxies one request to its upstream and the response back, streamed both ways: what one side does not take is not read
// from the other. It reads no bodies, follows no redirects, and repeats a request only if it never reached the upstream.
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Request, Response } from 'express';
import type { Dispatcher } from 'undici';
import { Problem } from '../../service/http/problem.ts';
import { ownHeaders } from '../../service/http/request-context.ts';
import { cut, ignore, keepOpen } from './client-socket.ts';
import { Download } from './download.ts';
import { ExchangeLease } from './exchange-lease.ts';
import { ExchangeWatch, type Watched } from './exchange-watch.ts';
import { FirstByteTimer, type Waits } from './first-byte-timer.ts';
import { failureProblem, isRepeatable, lateProblem, slowBodyProblem } from './relay-failure.ts';
import type { Outgoing, Relay, RelayOptions } from './relay-options.ts';
import { lingerOver, outgoingBody, RequestBody } from './request-body.ts';
import { type AnswerHeaders, addOwn, answerHeaders, answerTrailers, isEventStream } from './response-headers.ts';
import { noticeLeaving, openTunnel } from './tunnel.ts';

export function createRelay(options: RelayOptions): Relay {
  return (request, response, outgoing) => new Exchange(request, response, outgoing, options).run();
}

class Exchange implements Dispatcher.DispatchHandler, Watched, Waits {
  readonly #request: Request;
  readonly #response: Response;
  readonly #outgoing: Outgoing;
  readonly #options: RelayOptions;
  readonly #watch: ExchangeWatch;
  readonly #lease: ExchangeLease;
  readonly #timer: FirstByteTimer;
  readonly #done = Promise.withResolvers<void>();
  #body: Buffer | RequestBody | null = null;
  #download: Download | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #stopNotice: (() => void) | undefined;
  #isOver = false;
  #isEvents = false;
  #hasBegun = false;
  #isLastTry = false;

  constructor(request: Request, response: Response, outgoing: Outgoing, options: RelayOptions) {
    this.#request = request;
    this.#response = response;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#watch = new ExchangeWatch(options, outgoing, this);
    this.#lease = new ExchangeLease(options, outgoing, this.#watch);
    this.#timer = new FirstByteTimer(options.firstByte, this);
  }

  run(): Promise<void> {
    this.#response.on('close', this.#onClientClose).on('error', ignore);
    try {
      const wait = this.#lease.take();
      if (wait) wait.then(() => this.#begin()).catch((error: Problem) => this.#fail(error));
      else this.#begin();
    } catch (error) {
      this.#finish();
      throw error;
    }
    return this.#done.promise;
  }

  #begin(): void {
    if (this.#isOver) return;
    this.#body = outgoingBody(this.#request, this.#options.bodies);
    if (this.#body instanceof RequestBody) {
      this.#watch.session();
      this.#watch.upload(this.#body);
    }
    if (this.#outgoing.isUpgrade) this.#stopNotice = noticeLeaving(this.#request);
    this.#timer.start();
    this.#dispatch();
  }

  #dispatch(): void {
    const { path, headers, isUpgrade } = this.#outgoing;
    const upgrade = isUpgrade ? 'websocket' : null;
    this.#lease.dispatch({ path, method: this.#request.method, headers, body: this.#body, upgrade }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('the request is over'));
  }

  onBodySent(): void {
    this.#timer.refresh();
  }

  onRequestSent(): void {
    this.#timer.refresh();
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
    this.#timer.stop();
    this.#download = new Download(response, this.#request.method === 'HEAD' ? undefined : answer['content-length']);
    this.#followStream(answer);
    if (this.#body instanceof RequestBody && !this.#request.complete) response.shouldKeepAlive = false;
    addOwn(answer, ownHeaders(response), status);
    response.writeHead(status, answer);
    // A small answer comes with its head: one write for both. A slow one must not hold its head back.
    process.nextTick(this.#flushHead);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const download = this.#download as Download;
    this.#hasBegun = true;
    this.#options.bodies.buffers.note(chunk.length);
    if (!download.write(chunk, controller)) this.#watch.download(download);
    if (download.isOpen) this.#watch.session();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    const response = this.#response;
    this.#lease.onDone();
    if (!response.writableEnded) {
      const answer = answerTrailers(trailers);
      if (answer) response.addTrailers(answer as Record<string, string>);
      response.end();
    }
    if (response.writableLength > 0) this.#deliver();
    else this.#finish();
    lingerOver(this.#request);
    this.#done.resolve();
  }

  /** The upstream is done, and the client still has to take the rest. */
  #deliver(): void {
    this.#lease.close();
    this.#watch.session();
    if (this.#download) this.#watch.download(this.#download);
    this.#response.once('finish', () => this.#finish());
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#lease.onDone();
    if (this.#isOver) return;
    if (this.#mayRepeat(error)) {
      this.#isLastTry = true;
      this.#dispatch();
    } else this.#fail(failureProblem(error, this.#response.headersSent, this.#options.metrics));
  }

  onRequestUpgrade(_controller: unknown, status: number, headers: IncomingHttpHeaders, upstream: Duplex): void {
    this.#timer.stop();
    this.#stopNotice?.();
    // undici has taken its own listeners away.
    upstream.on('error', ignore);
    if (this.#isOver) return void upstream.destroy();
    keepOpen(this.#request, this.#response);
    openTunnel(this.#request, this.#response, { status, headers, upstream });
  }

  /** Ends what is not over when its session ends. */
  onSessionEnd(): void {
    this.#options.metrics.aborted.inc({ side: 'session' });
    // Events have ends of their own; of anything else nobody should think that it is complete.
    if (this.#isEvents && this.#response.headersSent) {
      this.#response.end();
      this.#leave();
      this.#done.resolve();
    } else this.#stop(new Problem('unauthenticated', 'The session has ended.'));
  }

  onSlow(direction: 'upload' | 'download'): void {
    this.#options.metrics.slowBodies.inc({ direction });
    if (!this.#response.headersSent) this.#response.shouldKeepAlive = false;
    this.#stop(slowBodyProblem());
  }

  #stop(problem: Problem): void {
    const response = this.#response;
    if (response.headersSent || response.statusCode === 101) {
      cut(response);
      this.#leave();
      this.#done.resolve();
    } else this.#fail(problem);
  }

  readonly #flushHead = (): void => {
    if (this.#hasBegun || this.#isOver) return;
    this.#response.flushHeaders();
    this.#watch.session();
  };

  #followStream(answer: AnswerHeaders): void {
    const { isStream } = this.#outgoing;
    this.#isEvents = isEventStream(answer);
    if (isStream || this.#isEvents) keepOpen(this.#request, this.#response);
    if (this.#isEvents && !isStream) this.#watch.openStream();
  }

  readonly #onClientClose = (): void => {
    if (this.#isOver) return;
    const { statusCode, writableFinished } = this.#response;
    if (!writableFinished && statusCode !== 101) this.#options.metrics.aborted.inc({ side: 'client' });
    this.#leave();
    this.#done.resolve();
  };

  onLong(): void {
    this.#watch.sessionAtOnce();
  }

  onLate(): boolean {
    if (this.#body instanceof RequestBody && this.#body.isWaiting) return false;
    this.#fail(lateProblem(this.#options.metrics));
    return true;
  }

  #mayRepeat(error: Error): boolean {
    const isBare = this.#body === null && !this.#outgoing.isUpgrade;
    return isBare && !this.#isLastTry && !this.#response.headersSent && isRepeatable(this.#request.method, error);
  }

  #fail(problem: Problem): void {
    if (this.#isOver) return;
    this.#leave();
    this.#done.reject(problem);
    this.#response.once('finish', () => lingerOver(this.#request));
  }

  /** Has undici give the request up. */
  #leave(): void {
    this.#finish();
    if (this.#body instanceof RequestBody) this.#body.destroy();
    this.#controller?.abort(new Error('the request is over'));
  }

  #finish(): void {
    this.#isOver = true;
    this.#timer.stop();
    this.#response.off('close', this.#onClientClose);
    this.#watch.close();
    this.#lease.close();
  }
}
