// Limits the memory of all bodies that pass through this process: what is read ahead, and the buffers that were passed on.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * A budget for reading on from clients whose upstream does not read. A closed connection is noticed only after its data was
 * read (RFC 9293 section 3.10.4). A body that gets nothing from the budget ends with UPSTREAM_TIMEOUT.
 */
export interface ReadAhead {
  /** Bytes that a body may read on, in addition to the `held` bytes it has; 0 if a budget is used up. Give them back. */
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
 * Each piece that a socket reads is a buffer outside V8's heap, which V8 counts late: at full speed a body leaves about 70 MiB
 * of them behind before V8 collects them. So the young generation is collected after a number of bytes (decision 0041).
 */
export interface PassingBuffers {
  /** Call for each piece that was read. */
  note(bytes: number): void;
}

/** Bytes between two collections: about 2 ms each, so 0.1 s for 1 GiB. */
const most = 16 * 1024 * 1024;

export function createPassingBuffers(): PassingBuffers {
  let collect: Collect | undefined;
  let passed = 0;
  return {
    note(bytes) {
      // The requests of small bodies fill the young generation, so V8 collects it anyway.
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

/** Node puts `gc` only into contexts that are created after the flag was set. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}
