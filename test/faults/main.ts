// `npm run test:faults`: users work while stores, services and networks fail, and a model checks the results. Exits
// with 1 if an invariant does not hold, and adds the topology and the seed to seeds.json. Every later run replays the
// entries of that file.
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { networkFaults } from './faults.ts';
import { run } from './run.ts';
import seeds from './seeds.json' with { type: 'json' };
import { startPostgresPair } from './stores/postgres-pair.ts';
import { type TopologyName, topologies, topologyNames } from './topologies.ts';

interface Kept {
  topology: string;
  seed: string;
  /** Number of faults that the failed run had. */
  faults: number;
}
const kept: Kept[] = seeds;

const help = `Runs users with a model against two replicas of each process, while a proxy in front of Postgres, Redis, the
identity provider, the mail server, the platform services and the upstream injects faults, and while Postgres and Redis
fail over. Checks that no write is lost, nothing happens twice, nobody sees foreign data or loses a session, all notices
arrive in order, and everything works again 10 s after each fault.

Usage: npm run test:faults -- [options]

  --faults N       faults in each topology (3)
  --minutes N      continues with further faults until this time has passed in each topology
  --seed TEXT      repeats the schedule of a run; a new seed is made and printed without it
  --topology NAME  only this topology: ${topologyNames.join(', ')}
  --report FILE    writes the counts as vitest's JSON reporter does
  --help           print this

Network faults:
${networkFaults.map(({ name, about }) => `  ${name.padEnd(16)} ${about}`).join('\n')}

Topologies:
${topologyNames.map((name) => `  ${name.padEnd(16)} ${topologies[name].about}`).join('\n')}

Without --seed and --topology, the run begins with test/faults/seeds.json. A failing seed is added to that file, which
keeps the last three: commit it with the fix.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      faults: { type: 'string', default: '3' },
      minutes: { type: 'string', default: '0' },
      seed: { type: 'string' },
      topology: { type: 'string' },
      report: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return leave(help, 0);
  const [faults, minutes] = [Number(values.faults), Number(values.minutes)];
  const isKnown = values.topology === undefined || values.topology in topologies;
  if (!(faults >= 1) || !(minutes >= 0) || !isKnown) return leave(`An argument is not valid.\n\n${help}`, 2);
  const seed = values.seed ?? randomBytes(6).toString('hex');
  const chosen = topologyNames.filter((name) => values.topology === undefined || values.topology === name);
  print(`load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors\n`);
  const first = values.seed === undefined && values.topology === undefined ? kept : [];
  const plans = [
    ...first.map((each) => ({ minutes: 0, ...each })),
    ...chosen.map((topology) => ({ topology, seed, faults, minutes })),
  ];
  const failed = await runAll(plans);
  if (values.report !== undefined) await writeReport(values.report, plans.length, failed.length);
  const isNew = ({ seed: one, topology }: Kept) =>
    !kept.some((each) => each.seed === one && each.topology === topology);
  await keepSeeds(failed.filter(isNew));
  return leave(
    failed.length === 0 ? '\nEverything held.\n' : `\n${failed.length} runs failed.\n`,
    failed.length > 0 ? 1 : 0,
  );
}

async function runAll(plans: (Kept & { minutes: number })[]): Promise<Kept[]> {
  const postgres = await startPostgresPair();
  const stop = () => postgres.close();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stop().finally(() => process.exit(130)));
  const failed: Kept[] = [];
  try {
    for (const { topology, seed, faults, minutes } of plans) {
      print(`seed ${seed}: npm run test:faults -- --topology ${topology} --seed ${seed} --faults ${faults}\n`);
      const { problems, recoveries } = await run({
        ...{ postgres, topology: topology as TopologyName, seed, faults, until: Date.now() + minutes * 60_000 },
        print: (line) => print(`${elapsed()}  ${line}\n`),
      });
      const slowest = recoveries.toSorted((one, other) => other.milliseconds - one.milliseconds)[0];
      if (slowest) print(`slowest recovery: ${(slowest.milliseconds / 1_000).toFixed(1)} s after ${slowest.fault}\n`);
      if (problems.length === 0) continue;
      print(
        `Invariants that do not hold (${topology}, seed ${seed}):\n${problems.map((each) => `  ${each}\n`).join('')}`,
      );
      failed.push({ topology, seed, faults: Math.max(1, recoveries.length) });
    }
    return failed;
  } finally {
    await stop();
  }
}

const print = (text: string) => void process.stdout.write(text);
function leave(text: string, code: number): number {
  print(text);
  return code;
}

const started = Date.now();
const elapsed = () => `${((Date.now() - started) / 1_000).toFixed(0).padStart(4)} s`;

/** Writes the report in the format of vitest's JSON reporter. Each run counts as one test. */
async function writeReport(file: string, runs: number, numFailedTests: number): Promise<void> {
  await writeFile(file, JSON.stringify({ numPassedTests: runs - numFailedTests, numFailedTests, testResults: [] }));
}

/** Maximum number of seeds in seeds.json, because each seed takes half a minute of every later run. */
const mostKept = 3;

async function keepSeeds(failed: Kept[]): Promise<void> {
  if (failed.length === 0) return;
  const list = [...kept, ...failed].slice(-mostKept);
  await writeFile(join(import.meta.dirname, 'seeds.json'), `${JSON.stringify(list, undefined, 2)}\n`);
  print('The seeds were added to test/faults/seeds.json.\n');
}

process.exit(await main());
