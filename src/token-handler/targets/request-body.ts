// The body of a request on its way to the upstream: streamed with back-pressure, never kept. Its end at either side never
// takes the client's connection with it, because the answer may still be on its way.
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Problem } from '../../service/problem.ts';
import type { PassingBuffers } from './passing-buffers.ts';

export class RequestBody extends Readable {
  readonly #source: IncomingMessage;
  readonly #buffers: PassingBuffers;
  #isAtEnd = false;

  constructor(source: IncomingMessage, buffers: PassingBuffers) {
    super({ highWaterMark: 65_536 });
    this.#source = source;
    this.#buffers = buffers;
    source.on('data', this.#onData);
    source.on('end', this.#onEnd);
    source.on('close', this.#onClose);
  }

  /** Whether it is the client who is waited for. */
  get isStarved(): boolean {
    return !this.#isAtEnd && !this.#source.isPaused() && this.readableLength === 0;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#buffers.note(chunk.length);
    if (!this.push(chunk)) this.#source.pause();
  };

  readonly #onEnd = (): void => {
    this.#isAtEnd = true;
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#isAtEnd) this.destroy(new Error('the client went away'));
  };

  override _read(): void {
    this.#source.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    callback(error);
  }
}

/**
 * The body as undici takes it: one that has arrived as a whole is sent as one piece, any other one is streamed. Throws
 * Problem `invalid-request` for a transfer coding that ends here but is not understood here (RFC 9112 section 6.1).
 */
export function outgoingBody(request: IncomingMessage, buffers: PassingBuffers): Buffer | RequestBody | null {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked')
    throw new Problem('invalid-request', 'The body has a transfer coding other than chunked.');
  if (coding !== undefined) return new RequestBody(request, buffers);
  const bytes = Number(length);
  if (bytes === 0) return null;
  return request.readableLength === bytes ? readWhole(request) : new RequestBody(request, buffers);
}

/** All that is there; one read may answer less. */
function readWhole(request: IncomingMessage): Buffer {
  const first: Buffer = request.read();
  if (request.readableLength === 0) return first;
  const chunks = [first];
  for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Milliseconds for which a client may go on sending what nobody reads any more. */
const lingering = 5_000;

/**
 * After an answer that did not wait for the whole body: reads and drops the rest, so that the client gets to read the
 * answer (RFC 9112 section 9.6), but not for ever.
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
