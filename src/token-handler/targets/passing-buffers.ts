// Keeps the memory of bodies that pass through near what is on its way. Each piece that a socket reads is a buffer outside of
// the heap, and V8 minds such memory late: a body at full speed leaves some 70 MiB of read buffers behind before they are
// collected. It counts bytes and has the young generation collected, nothing else.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface PassingBuffers {
  /** So many bytes were read. */
  note(bytes: number): void;
}

/** Bytes between two collections: about 2 ms each, so 0.1 s for 1 GiB. */
const most = 16 * 1024 * 1024;

export function createPassingBuffers(): PassingBuffers {
  let collect: Collect | undefined;
  let passed = 0;
  return {
    note(bytes) {
      // Small bodies come with requests that fill the young generation by themselves.
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

/** Node has it for those alone who ask before they make a context. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}
