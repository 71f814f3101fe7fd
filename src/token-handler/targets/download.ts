// The body of a response on its way to the client: written with back-pressure, and never kept. It knows how much of it the
// client has taken.
import type { Response } from 'express';
import type { Dispatcher } from 'undici';
import { endWith } from './last-piece.ts';
import type { PacedBody } from './transfer-rate.ts';

export class Download implements PacedBody {
  readonly #response: Response;
  /** Bytes that are still to come; NaN where the length is unknown. */
  #remaining: number;
  #written = 0;
  #passed = 0;
  /** At the last look: bytes of pieces that are gone, bytes of the piece that is going, and what of it has been counted. */
  #gone = 0;
  #going = 0;
  #counted = 0;

  /** `length` is undefined where it is unknown. */
  constructor(response: Response, length: string | string[] | undefined) {
    this.#response = response;
    this.#remaining = length === undefined ? Number.NaN : Number(length);
  }

  /** Whether more is to come after what has been written. */
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
   * at 1 KiB/s. What is left of it is in libuv's queue, where Node's own idle time-out of sockets looks too.
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

  /** False when it paused the upstream, because the client has to take what was written first. */
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

function queuedBytes({ socket }: Response): number {
  const { _handle: handle } = (socket ?? {}) as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? 0;
}
