// A limited worker whose jobs do what hostile code could do: loop, exhaust memory, crash, or access what is forbidden.
import { readFileSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { connect } from 'node:net';
import { getPriority } from 'node:os';
import { serveJobs } from '../../src/service/workers/limited-worker.ts';

export interface Deed {
  deed: keyof typeof deeds;
}

let answered = 0;
const kept: Buffer[] = [];
let refusal: string | undefined;
const tried = (work: () => unknown): string => {
  try {
    work();
    return 'allowed';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'failed';
  }
};

const deeds = {
  count: () => (answered += 1),
  throw: () => {
    throw new Error('no');
  },
  loop: () => {
    for (;;) answered += 0;
  },
  backtrack: () => /^(a+)+$/.test(`${'a'.repeat(60)}!`),
  // `text` and `map` each make one allocation beyond the memory limit. In a worker thread, such an allocation would end
  // the whole process.
  text: () => ({ ['x'.repeat(2 ** 28)]: 1 }),
  map: () => {
    const map = new Map<number, number>();
    for (let next = 0; ; next += 1) map.set(next, next);
  },
  // The memory of buffers is outside the heap, so V8's limit of the heap does not count it.
  buffer: () => void kept.push(Buffer.alloc(2 ** 27, 1)),
  buffers: () => {
    for (let nth = 0; nth < 200; nth += 1) {
      kept.push(Buffer.alloc(2 ** 24, 1));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  },
  exit: () => process.exit(),
  /** Only a new process does this. */
  exitUnlessNew: () => {
    if (answered > 0) process.exit();
  },
  environment: () => Object.keys(process.env).filter((name) => name !== 'NODE_CHANNEL_FD'),
  compiled: () => getCompileCacheDir(),
  read: () => tried(() => readFileSync(`/proc/${process.ppid}/environ`)),
  write: () => tried(() => writeFileSync('/tmp/naughty', 'x')),
  writeCompiled: () => tried(() => writeFileSync(`${getCompileCacheDir()}/naughty`, 'x')),
  connect: () => {
    connect(1, '127.0.0.1').on('error', (error: NodeJS.ErrnoException) => {
      refusal = error.code;
    });
  },
  refusal: () => refusal,
  priority: () => getPriority(),
  pid: () => process.pid,
};

serveJobs<Deed, unknown>(({ deed }, { report }) => {
  if (deed === 'map') report('so far');
  return deeds[deed]();
});
