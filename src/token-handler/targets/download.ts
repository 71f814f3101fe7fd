// Writes the body of a response to the client, with back-pressure and without keeping it. It measures how much of the body
// the client has taken.
import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import type { PacedBody } from './transfer-rate.ts';

export class Download implements PacedBody {
  readonly #response: ServerResponse;
  /** Bytes that are still to come; NaN if the length is unknown. */
  #remaining: number;
  #written = 0;
  #passed = 0;
  /** At the last look: bytes of pieces that were sent, unsent bytes of the current piece, and how many of it were counted. */
  #gone = 0;
  #going = 0;
  #counted = 0;

  /** `length` is undefined if it is unknown. */
  constructor(response: ServerResponse, length: string | string[] | undefined) {
    this.#response = response;
    this.#remaining = length === undefined ? Number.NaN : Number(length);
  }

  /** Whether the body is incomplete. */
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
   * A response counts a piece as written when its last byte has been handed to the kernel, which takes a minute for 64 KiB
   * at 1 KiB/s. The rest of the piece is in libuv's queue, which Node's idle time-out of sockets reads too.
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

  /** Returns false if it paused the upstream because the client must read first. */
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

/** Bytes up to which copying a piece costs less than writing it separately. */
const small = 8_192;

/** Given a string, Node writes head and body in one piece; Latin-1 keeps each byte. */
function endWith(response: ServerResponse, chunk: Buffer): void {
  if (chunk.length <= small) response.end(chunk.toString('latin1'), 'latin1');
  else response.end(chunk);
}

function queuedBytes({ socket }: ServerResponse): number {
  const { _handle: handle } = (socket ?? {}) as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? 0;
}
