// `npm run soak`: users and a steady load for an hour, while replicas are deployed, drafts expire, keys are rotated and
// faults happen. Exits with 1 if an invariant does not hold or a resource grows.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { withPostgres } from '../adversary/world/own-postgres.ts';
import { soakPage } from './page.ts';
import { soak } from './run.ts';

const help = `Runs two replicas of each process at half of their capacity, while replicas are deployed, drafts expire, keys are
rotated and faults happen. Measures whether memory, descriptors, handles, connections, the delay of the event loop or
latencies grow, with confidence intervals.

Usage: npm run soak -- [options]

  --minutes N   measured time (60); the start, the capacity and the end take 3 minutes more
  --seed TEXT   repeats the faults of a run; a new seed is made and printed without it
  --page        writes docs/soak.md
  --help        print this
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '60' },
      seed: { type: 'string', default: randomBytes(6).toString('hex') },
      page: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (values.help || !(minutes > 0)) {
    print(values.help ? help : `${values.minutes} is not a number of minutes.\n\n${help}`);
    return values.help ? 0 : 2;
  }
  const { seed } = values;
  print(`seed ${seed}: npm run soak -- --minutes ${minutes} --seed ${seed}\n`);
  print(`load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors\n`);
  const result = await withPostgres((administratorUrl) =>
    soak({
      ...{ administratorUrl, seed, duration: minutes * 60_000 },
      print: (line) => print(`${elapsed()}  ${line}\n`),
    }),
  );
  const page = soakPage({ ...result, minutes, seed, commit: commit(), machine: machine() });
  if (values.page) await writeFile(join(import.meta.dirname, '../../docs/soak.md'), page);
  print(`\n${page}`);
  return result.problems.length === 0 ? 0 : 1;
}

const print = (text: string) => void process.stdout.write(text);
const started = Date.now();
const elapsed = () => `${((Date.now() - started) / 1_000).toFixed(0).padStart(5)} s`;
const commit = () => execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
const machine = () =>
  `${availableParallelism()} processors (${cpus()[0]?.model.split(' ')[0] ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB`;

process.exit(await main());
