// The start bench measures how long the form service and the token handler take from the start of their process until
// they listen, and how much memory they use when idle. As in the image, the program is bundled, the databases are
// migrated, and the compile cache is filled.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bundle } from '../../dev/image/bundle.ts';
import { productionFlags } from '../support/token-handler-process.ts';
import { type Figure, single, tableOf } from './figures.ts';
import { startProxyWorld } from './proxy-world.ts';
import { meanOf } from './statistics.ts';

const rounds = Number(process.env.BENCH_STARTS || 10);
/** Milliseconds after which the memory of an idle process is read. */
const settling = 3_000;
const metered = ['--import', import.meta.resolve('../support/cpu-to-listen.ts')];

interface Start {
  /** Seconds from the start of the process until it listened. */
  passed: number;
  /** CPU seconds of the main thread until the process listened. */
  cpu: number;
  residentMib: number;
}

export async function benchStart(): Promise<Figure[]> {
  const world = await startProxyWorld({ upstreamUrl: 'http://127.0.0.1:9', sessions: 1 });
  const program = await mkdtemp(join(tmpdir(), 'formgate-bundle-'));
  try {
    await bundle(program);
    const figures: Figure[] = [];
    for (const [name, folder] of [
      ['form service', 'forms'],
      ['token handler', 'token-handler'],
    ] as const) {
      const main = join(program, 'src', folder, 'main.js');
      const env = {
        ...world.environments[folder],
        PORT: '0',
        METRICS_PORT: '0',
        NODE_COMPILE_CACHE: join(program, 'cache'),
      };
      // The first start fills the compile cache, which the image contains.
      await start(main, env);
      const starts: Start[] = [];
      for (let round = 0; round < rounds; round += 1) {
        starts.push(await start(main, env));
        console.error(`  start: ${name}, ${round + 1} of ${rounds}`);
      }
      figures.push(...figuresOf(name, starts));
    }
    console.log(`\n${tableOf(figures)}`);
    return figures;
  } finally {
    await world.close();
    await rm(program, { recursive: true });
  }
}

function figuresOf(name: string, starts: Start[]): Figure[] {
  // Other programs can only lengthen a start, so the shortest start is closest to a start on an idle machine.
  const shortest = Math.min(...starts.map(({ passed }) => passed));
  return [
    { name: `${name}: s until it listens, shortest of ${rounds}`, ...single(shortest), most: 0.4, digits: 2 },
    { name: `${name}: CPU s of its main thread until then`, ...meanOf(starts.map(({ cpu }) => cpu)), digits: 2 },
    { name: `${name}: MiB resident, idle`, ...meanOf(starts.map((one) => one.residentMib)), most: 110, digits: 0 },
  ];
}

async function start(main: string, env: Record<string, string>): Promise<Start> {
  const started = performance.now();
  const child = spawn(process.execPath, [...productionFlags, ...metered, main], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exit = once(child, 'exit');
  let said = '';
  for await (const chunk of child.stderr) {
    said += String(chunk);
    const [, nanoseconds] = /cpu (\d+)/.exec(said) ?? [];
    if (nanoseconds === undefined) continue;
    const passed = (performance.now() - started) / 1_000;
    await delay(settling);
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    child.kill('SIGTERM');
    await exit;
    return { passed, cpu: Number(nanoseconds) / 1e9, residentMib: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024 };
  }
  throw new Error(`the process ended before it listened: ${said}`);
}
