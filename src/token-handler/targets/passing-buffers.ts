// Limits the memory of bodies that pass through. Each piece that a socket reads is a buffer outside V8's heap, which V8 counts
// late: at full speed a body leaves about 70 MiB of read buffers behind before V8 collects them. So the young generation is
// collected after a number of bytes (decision 0041).
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

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
