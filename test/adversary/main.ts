// `npm run test:adversary`: honest users and adversaries against two replicas of each process. Exits with 1 if an
// invariant does not hold, and adds the seed to seeds.json. Every later run begins with the seeds in that file.
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { adversaries } from './adversaries/adversaries.ts';
import { run } from './run.ts';
import { planPass } from './schedule.ts';
import seeds from './seeds.json' with { type: 'json' };
import { withPostgres } from './world/own-postgres.ts';

const kept: string[] = seeds;

const help = `Runs honest users and adversaries against two replicas of each process, and checks that no process exits or
blocks, that honest users are served quickly and with their own data, and that memory and descriptors come back.

Usage: npm run test:adversary -- [options]

  --seconds N   how long adversaries work (180), without the start and the baseline
  --seed TEXT   repeats the choices of a run; a new one is made and printed without it
  --only NAME   only this adversary; may be given several times
  --report FILE writes the counts as vitest's JSON reporter does
  --help        print this

Adversaries:
${adversaries.map(({ name, about }) => `  ${name.padEnd(32)}${about}`).join('\n')}

The run begins with the seeds of test/adversary/seeds.json. A failing seed is added to that file: commit it with the fix.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '180' },
      seed: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      report: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return leave(help, 0);
  const unknown = values.only.find((name) => !adversaries.some((adversary) => adversary.name === name));
  const seconds = Number(values.seconds);
  if (unknown !== undefined || !(seconds > 0)) return leave(`${unknown ?? values.seconds} is not valid.\n\n${help}`, 2);
  const seed = values.seed ?? randomBytes(6).toString('hex');
  const replay = values.only.map((name) => ` --only ${name}`).join('');
  print(`seed ${seed}: npm run test:adversary -- --seed ${seed} --seconds ${seconds}${replay}\n`);
  // Seeds that failed in earlier runs come first, in short passes.
  const first = values.seed === undefined && values.only.length === 0 ? kept : [];
  const slots = [
    ...first.flatMap((each) => planPass(each, 15, { together: 4 })),
    ...planPass(seed, seconds, { only: values.only }),
  ];
  print(`load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors\n`);
  const problems = await withPostgres((administratorUrl) =>
    run({
      ...{ administratorUrl, slots, baseline: 12_000, floor: 250, settling: 45_000 },
      print: (line) => print(`${elapsed()}  ${line}\n`),
    }),
  );
  if (values.report !== undefined) await writeReport(values.report, problems);
  if (problems.length === 0) return leave(`\nEverything held (seed ${seed}).\n`, 0);
  print(`\nInvariants that do not hold (seed ${seed}):\n${problems.map((problem) => `  ${problem}\n`).join('')}`);
  if (values.only.length === 0 && !kept.includes(seed)) await keepSeed(seed);
  return 1;
}

const print = (text: string) => void process.stdout.write(text);
function leave(text: string, code: number): number {
  print(text);
  return code;
}

const started = Date.now();
const elapsed = () => `${((Date.now() - started) / 1_000).toFixed(0).padStart(4)} s`;

/** Each problem counts as a failed test. Without problems, each adversary counts as a passed test. */
async function writeReport(file: string, problems: string[]): Promise<void> {
  const numPassedTests = problems.length === 0 ? adversaries.length : 0;
  await writeFile(file, JSON.stringify({ numPassedTests, numFailedTests: problems.length, testResults: [] }));
}

/** Maximum number of seeds in seeds.json, because each seed takes about 15 s of every later run. */
const mostKept = 5;

async function keepSeed(seed: string): Promise<void> {
  const list = [...kept, seed].slice(-mostKept).map((each) => JSON.stringify(each));
  // The list is written in Biome's format, so that the file can be committed unchanged.
  await writeFile(join(import.meta.dirname, 'seeds.json'), `[${list.join(', ')}]\n`);
  print(`The seed was added to test/adversary/seeds.json.\n`);
}

process.exit(await main());
