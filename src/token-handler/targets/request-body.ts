// Streams the body of a request to the upstream, with back-pressure and without keeping it. When the body ends at either side,
// the client's connection stays open, because the response may still be on its way.
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Problem } from '../../service/http/problem.ts';
import type { PassingBuffers } from './passing-buffers.ts';
import type { ReadAhead } from './read-ahead.ts';
import type { PacedBody } from './transfer-rate.ts';

export interface BodyBuffers {
  buffers: PassingBuffers;
  readAhead: ReadAhead;
}

export class RequestBody extends Readable implements PacedBody {
  readonly #source: IncomingMessage;
  readonly #buffers: PassingBuffers;
  readonly #readAhead: ReadAhead;
  #isAtEnd = false;
  #isWanted = false;
  #passed = 0;
  /** Bytes that the upstream had taken at the last look. */
  #takenBefore = -1;
  /** Bytes taken from the budget for reading on. */
  #extra = 0;

  constructor(source: IncomingMessage, { buffers, readAhead }: BodyBuffers) {
    super({ highWaterMark: 65_536 });
    this.#source = source;
    this.#buffers = buffers;
    this.#readAhead = readAhead;
    // undici or the response reports its errors to the request. While the request waits for a connection there is no other
    // listener, and an error without a listener ends the process.
    this.on('error', () => undefined);
    source.on('data', this.#onData);
    source.on('end', this.#onEnd);
    source.on('close', this.#onClose);
  }

  get passed(): number {
    return this.#passed;
  }

  /** Whether the upstream is ready for more data and the client has sent none. */
  get isWaiting(): boolean {
    const isReady = this.#isWanted && !this.isPaused() && !this.#source.isPaused();
    return isReady && !this.#isAtEnd && this.readableLength === 0;
  }

  /** Reads on while the upstream reads nothing, so that a closed connection of the client is noticed. */
  look(): void {
    const taken = this.#passed - this.readableLength;
    const isStalled = this.#source.isPaused() && taken === this.#takenBefore;
    this.#takenBefore = taken;
    if (!isStalled) return;
    const more = this.#readAhead.take(this.#extra);
    this.#extra += more;
    if (more > 0) this.#source.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#buffers.note(chunk.length);
    this.#passed += chunk.length;
    if (!this.push(chunk) && this.readableLength >= this.#extra) this.#source.pause();
  };

  readonly #onEnd = (): void => {
    this.#isAtEnd = true;
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#isAtEnd) this.destroy(new Error('the client went away'));
  };

  override _read(): void {
    this.#isWanted = true;
    this.#source.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    this.#readAhead.giveBack(this.#extra);
    this.#extra = 0;
    callback(error);
  }
}

/**
 * The body for undici: a body that has arrived completely is sent in one piece, any other body is streamed. Throws Problem
 * `invalid-request` for a transfer coding that this server does not support (RFC 9112 section 6.1).
 */
export function outgoingBody(request: IncomingMessage, buffers: BodyBuffers): Buffer | RequestBody | null {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked')
    throw new Problem('invalid-request', 'The body has a transfer coding other than chunked.');
  if (coding !== undefined) return new RequestBody(request, buffers);
  const bytes = Number(length);
  if (bytes === 0) return null;
  return request.readableLength === bytes ? readWhole(request) : new RequestBody(request, buffers);
}

/** Everything that is buffered; a single read may return less. */
function readWhole(request: IncomingMessage): Buffer {
  const first: Buffer = request.read();
  if (request.readableLength === 0) return first;
  const chunks = [first];
  for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Milliseconds for which a client may continue to send a body that is dropped. */
const lingering = 5_000;

/**
 * After a response that did not wait for the whole body: reads and drops the rest for a limited time, so that the client
 * can read the response (RFC 9112 section 9.6).
 */
export function lingerOver(request: IncomingMessage): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, lingering);
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
