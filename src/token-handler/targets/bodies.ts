// Streams the bodies of a proxied request and its response with back-pressure, and measures how many bytes the client
// has sent or read. When a request body ends or fails, the client's connection stays open, because the response may
// still follow.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '../../service/http/problem.ts';
import type { PassingBuffers, ReadAhead } from './body-memory.ts';
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
  /** Number of bytes that the upstream had read when `look` was called last. */
  #takenBefore = -1;
  /** Number of bytes that this body has taken from the read-ahead budget. */
  #extra = 0;

  constructor(source: IncomingMessage, { buffers, readAhead }: BodyBuffers) {
    super({ highWaterMark: 65_536 });
    this.#source = source;
    this.#buffers = buffers;
    this.#readAhead = readAhead;
    // Without a listener, an `error` event would end the process. While the request waits for a connection, this stream
    // has no other listener. Later, undici or the response reports errors.
    this.on('error', () => undefined);
    source.on('data', this.#onData);
    source.on('end', this.#onEnd);
    source.on('close', this.#onClose);
  }

  get passed(): number {
    return this.#passed;
  }

  /** True if the upstream is ready for more data and the client has sent none. */
  get isWaiting(): boolean {
    const isReady = this.#isWanted && !this.isPaused() && !this.#source.isPaused();
    return isReady && !this.#isAtEnd && this.readableLength === 0;
  }

  /**
   * If the upstream reads nothing, reads ahead from the client, to notice whether the client has closed the connection.
   */
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
 * Returns the body for undici: null if it is empty, a Buffer if it has a known length and has arrived completely, and
 * otherwise a stream. Throws Problem `invalid-request` for an unsupported transfer coding (RFC 9112 section 6.1).
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

/** Reads all parts of the request body that Node has buffered. A single call of `read` may return less. */
function readWhole(request: IncomingMessage): Buffer {
  const first: Buffer = request.read();
  if (request.readableLength === 0) return first;
  const chunks = [first];
  for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export class Download implements PacedBody {
  readonly #response: ServerResponse;
  /** Number of bytes that the upstream still has to send. NaN if the length is unknown. */
  #remaining: number;
  #written = 0;
  #passed = 0;
  /** Number of bytes in completely sent chunks, at the previous call of `look`. */
  #gone = 0;
  /** Number of unsent bytes of the current chunk, at the previous call of `look`. */
  #going = 0;
  /** Number of bytes of the current chunk that `passed` already includes. */
  #counted = 0;

  /** `length` is the Content-Length of the response, or undefined if the length is unknown. */
  constructor(response: ServerResponse, length: string | string[] | undefined) {
    this.#response = response;
    this.#remaining = length === undefined ? Number.NaN : Number(length);
  }

  /** True if the upstream has not sent the whole body yet, or if the length of the body is unknown. */
  get isOpen(): boolean {
    return this.#remaining !== 0;
  }

  get isWaiting(): boolean {
    return this.#response.writableLength > 0;
  }

  get passed(): number {
    return this.#passed;
  }

  /**
   * Updates `passed`. Node counts a chunk as written only when the kernel has taken its last byte. A chunk of 64 KiB at
   * 1 KiB/s takes a minute. Therefore `look` also reads the length of libuv's queue, as the idle timeout of Node's
   * sockets does.
   */
  look(): void {
    const gone = this.#written - this.#response.writableLength;
    const going = queuedBytes(this.#response);
    if (gone > this.#gone) {
      this.#passed += Math.max(gone - this.#gone - this.#counted, 0);
      this.#counted = 0;
    } else if (going < this.#going) {
      this.#passed += this.#going - going;
      this.#counted += this.#going - going;
    }
    this.#gone = Math.max(gone, this.#gone);
    this.#going = going;
  }

  /**
   * Sends a chunk to the client. If the client reads too slowly, returns false, and pauses the upstream until the
   * client has read the buffered data.
   */
  write(chunk: Buffer, controller: Dispatcher.DispatchController): boolean {
    const response = this.#response;
    this.#remaining -= chunk.length;
    this.#written += chunk.length;
    if (this.#remaining === 0) endWith(response, chunk);
    else if (!response.write(chunk)) {
      controller.pause();
      response.once('drain', () => controller.resume());
      return false;
    }
    return true;
  }
}

/** Maximum size in bytes of a small chunk. Copying such a chunk is cheaper than writing it separately. */
const small = 8_192;

/**
 * Ends the response with its last chunk. Passes a small chunk as a string, because Node then writes the response
 * headers and the body together. The encoding Latin-1 preserves every byte.
 */
function endWith(response: ServerResponse, chunk: Buffer): void {
  if (chunk.length <= small) response.end(chunk.toString('latin1'), 'latin1');
  else response.end(chunk);
}

function queuedBytes({ socket }: ServerResponse): number {
  const { _handle: handle } = (socket ?? {}) as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? 0;
}
