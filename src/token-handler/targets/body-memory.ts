// Limits the memory that all request and response bodies in this process use together: for data that is read ahead, and
// for buffers of data that was already forwarded.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * A budget for reading ahead from clients whose upstream reads nothing. This process notices the end of a client's
 * connection only after it has read all data of the client (RFC 9293 section 3.10.4). If the budget is used up and the
 * client has left, only UPSTREAM_TIMEOUT ends the request.
 */
export interface ReadAhead {
  /**
   * Returns the number of bytes that a body may read in addition to the `held` bytes that it has already taken. Returns
   * 0 if the whole budget, or the maximum of one body, is used up. Give all taken bytes back with `giveBack`.
   */
  take(held: number): number;
  giveBack(bytes: number): void;
}

const mebibyte = 1_048_576;
const budget = 64 * mebibyte;
const budgetOfBody = 16 * mebibyte;
const step = 2 * mebibyte;

export function createReadAhead(): ReadAhead {
  let left = budget;
  return {
    take(held) {
      if (left < step || held >= budgetOfBody) return 0;
      left -= step;
      return step;
    },
    giveBack(bytes) {
      left += bytes;
    },
  };
}

/**
 * Makes V8 collect its young generation after a number of forwarded bytes. Sockets read into buffers outside V8's heap.
 * Without help, V8 frees these buffers late: at full speed, a body leaves about 70 MiB of buffers before V8 collects
 * them (decision 0041).
 */
export interface PassingBuffers {
  /** Counts the bytes of a chunk of a body. Call this for each chunk that was read. */
  note(bytes: number): void;
}

/** Bytes between two collections. A collection takes about 2 ms, so the collections for 1 GiB take about 0.1 s. */
const most = 16 * 1024 * 1024;

export function createPassingBuffers(): PassingBuffers {
  let collect: Collect | undefined;
  let passed = 0;
  return {
    note(bytes) {
      // Small chunks are not counted. Requests with small chunks fill the young generation, so V8 collects it anyway.
      if (bytes < 16_384) return;
      passed += bytes;
      if (passed < most) return;
      passed = 0;
      collect ??= findCollect();
      collect({ type: 'minor' });
    },
  };
}

type Collect = (options: { type: 'minor' }) => void;

/** Creates a new V8 context, because V8 defines `gc` only in contexts that are created after `--expose-gc` was set. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}
