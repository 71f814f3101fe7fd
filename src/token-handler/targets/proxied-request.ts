// Forwards one request to its upstream, and the response to the client. Streams both bodies, and reads from one side
// only as fast as the other side reads. Follows no redirects. Repeats a request only if no response has begun. The
// methods `on…` are callbacks of undici, from `onSessionEnd` on of RequestWatch and FirstByteTimer.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '../../service/http/problem.ts';
import { type HttpResponse, writeHead, writeInformation } from '../../service/http/request-context.ts';
import { Download, outgoingBody, RequestBody } from './bodies.ts';
import { cut, endSoon, ignore, keepOpen } from './client-socket.ts';
import { ConnectionLease } from './connection-lease.ts';
import { failureProblem, isRepeatable, lateProblem, slowBodyProblem } from './proxy-failure.ts';
import type { Forward, Outgoing, ProxyOptions } from './proxy-options.ts';
import { FirstByteTimer, RequestWatch, type Waits, type Watched } from './request-watch.ts';
import { isEventStream, type ResponseHeaders, responseHeaders, responseTrailers } from './response-headers.ts';
import { noticeLeaving, openTunnel } from './tunnel.ts';

export function createProxy(options: ProxyOptions): Forward {
  return (request, response, outgoing) => new ProxiedRequest(request, response, outgoing, options).run();
}

class ProxiedRequest implements Dispatcher.DispatchHandler, Watched, Waits {
  readonly #request: IncomingMessage;
  readonly #response: HttpResponse;
  readonly #outgoing: Outgoing;
  readonly #options: ProxyOptions;
  readonly #watch: RequestWatch;
  readonly #lease: ConnectionLease;
  readonly #timer: FirstByteTimer;
  readonly #done = Promise.withResolvers<void>();
  #body: Buffer | RequestBody | null = null;
  #download: Download | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #stopWatchingClient: (() => void) | undefined;
  /** Value of `performance.now()` when the request, or the latest part of its body, was sent. */
  #sentAt = 0;
  #isClosed = false;
  #isEvents = false;
  #hasBodyBegun = false;
  #isLastTry = false;

  constructor(request: IncomingMessage, response: HttpResponse, outgoing: Outgoing, options: ProxyOptions) {
    this.#request = request;
    this.#response = response;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#watch = new RequestWatch(options, outgoing, this);
    this.#lease = new ConnectionLease(options, outgoing, this.#watch);
    this.#timer = new FirstByteTimer(options.firstByte, this);
  }

  async run(): Promise<void> {
    this.#response.on('close', this.#onClientClose).on('error', ignore);
    try {
      await this.#lease.take();
      this.#send();
    } catch (error) {
      this.#fail(error as Problem);
    }
    return this.#done.promise;
  }

  #send(): void {
    if (this.#isClosed) return;
    this.#body = outgoingBody(this.#request, this.#options.bodies);
    if (this.#body instanceof RequestBody) {
      this.#watch.session();
      this.#watch.upload(this.#body);
    }
    if (this.#outgoing.isUpgrade) this.#stopWatchingClient = noticeLeaving(this.#request);
    this.#timer.start();
    this.#dispatch();
  }

  #dispatch(): void {
    const { method, path, headers, isUpgrade } = this.#outgoing;
    this.#sentAt = performance.now();
    this.#lease.dispatch({ path, method, headers, body: this.#body, upgrade: isUpgrade ? 'websocket' : null }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isClosed) controller.abort(new Error('the request is over'));
  }

  onBodySent(): void {
    this.onRequestSent();
  }

  onRequestSent(): void {
    this.#sentAt = performance.now();
    this.#timer.refresh();
  }

  onResponseStarted(): void {
    // The upstream has received the request, so the request must not be sent again.
    this.#isLastTry = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const response = this.#response;
    const passedOn = responseHeaders(headers, status, this.#request);
    if (status < 200) {
      if (this.#request.httpVersionMinor > 0) writeInformation(response, status, passedOn);
      return;
    }
    this.#endWaitForHead();
    this.#download = new Download(response, passedOn['content-length']);
    this.#noteStream(passedOn);
    if (this.#body instanceof RequestBody && !this.#request.complete) response.shouldKeepAlive = false;
    writeHead(response, status, passedOn);
    // Waits one tick, to write the headers together with a small body. A slow body must not delay the headers longer.
    process.nextTick(this.#flushHead);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const download = this.#download as Download;
    this.#hasBodyBegun = true;
    this.#options.bodies.buffers.note(chunk.length);
    if (!download.write(chunk, controller)) this.#watch.download(download);
    if (download.isOpen) this.#watch.session();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    const response = this.#response;
    this.#lease.onDone();
    if (!response.writableEnded) {
      const passedOn = responseTrailers(trailers);
      if (passedOn) response.addTrailers(passedOn as Record<string, string>);
      response.end();
    }
    if (response.writableLength > 0) this.#waitForSlowReader();
    else this.#close();
    this.#done.resolve();
  }

  #waitForSlowReader(): void {
    this.#lease.close();
    this.#watch.session();
    if (this.#download) this.#watch.download(this.#download);
    this.#response.once('finish', () => this.#close());
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#lease.onDone();
    if (this.#isClosed) return;
    if (this.#mayRepeat(error)) {
      this.#isLastTry = true;
      this.#dispatch();
    } else this.#fail(failureProblem(error, this.#response.headersSent, this.#options.metrics));
  }

  onRequestUpgrade(_controller: unknown, status: number, headers: IncomingHttpHeaders, upstream: Duplex): void {
    this.#endWaitForHead();
    // undici has removed its listeners from `upstream`. Without a listener, an `error` event would end the process.
    upstream.on('error', ignore);
    if (this.#isClosed) return void upstream.destroy();
    keepOpen(this.#request, this.#response);
    openTunnel(this.#request, this.#response, { status, headers, upstream });
  }

  /** Called when the session of the request has ended. Ends the request. */
  onSessionEnd(): void {
    this.#options.metrics.aborted.inc({ side: 'session' });
    // An event stream can end after any event. Other responses are aborted, because they must not appear complete.
    if (this.#isEvents && this.#response.headersSent) {
      endSoon(this.#response);
      this.#abort();
      this.#done.resolve();
    } else this.#stop(new Problem('unauthenticated', 'The session has ended.'));
  }

  onSlow(direction: 'upload' | 'download'): void {
    this.#options.metrics.slowBodies.inc({ direction });
    if (!this.#response.headersSent) this.#response.shouldKeepAlive = false;
    this.#stop(slowBodyProblem());
  }

  #stop(problem: Problem): void {
    if (this.#response.headersSent || this.#response.statusCode === 101) {
      cut(this.#response);
      this.#abort();
      this.#done.resolve();
    } else this.#fail(problem);
  }

  #endWaitForHead(): void {
    this.#timer.stop();
    this.#stopWatchingClient?.();
    this.#options.metrics.upstreamDuration.observe((performance.now() - this.#sentAt) / 1_000);
  }

  readonly #flushHead = (): void => {
    if (this.#hasBodyBegun || this.#isClosed) return;
    this.#response.flushHeaders();
    this.#watch.session();
  };

  #noteStream(headers: ResponseHeaders): void {
    this.#isEvents = isEventStream(headers);
    if (this.#outgoing.isStream || this.#isEvents) keepOpen(this.#request, this.#response);
    if (this.#isEvents && !this.#outgoing.isStream) this.#watch.openStream();
  }

  readonly #onClientClose = (): void => {
    if (this.#isClosed) return;
    const { statusCode, writableFinished } = this.#response;
    if (!writableFinished && statusCode !== 101) this.#options.metrics.aborted.inc({ side: 'client' });
    this.#abort();
    this.#done.resolve();
  };

  onLong(): void {
    this.#watch.sessionAtOnce();
    // An upstream cannot respond while the client is still sending the request.
    if (!(this.#body instanceof RequestBody && this.#body.isWaiting)) this.#lease.suspect();
  }

  onLate(): boolean {
    if (this.#body instanceof RequestBody && this.#body.isWaiting) return false;
    this.#fail(lateProblem(this.#options.metrics));
    return true;
  }

  #mayRepeat(error: Error): boolean {
    const isBare = this.#body === null && !this.#outgoing.isUpgrade;
    return isBare && !this.#isLastTry && !this.#response.headersSent && isRepeatable(this.#outgoing.method, error);
  }

  #fail(problem: Problem): void {
    if (this.#isClosed) return;
    this.#abort();
    this.#done.reject(problem);
  }

  /** Ends this request, and makes undici abort the request to the upstream. */
  #abort(): void {
    this.#close();
    if (this.#body instanceof RequestBody) this.#body.destroy();
    this.#controller?.abort(new Error('the request is over'));
  }

  #close(): void {
    this.#isClosed = true;
    this.#timer.stop();
    this.#response.off('close', this.#onClientClose);
    this.#watch.close();
    this.#lease.close();
  }
}
