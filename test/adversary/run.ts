// One run: honest users alone for a baseline, then with the adversaries of each pass, then alone again; and the judgement.
import { setTimeout as delay } from 'node:timers/promises';
import { type Attackers, startAttackers } from './attackers.ts';
import { type HonestUsers, startHonestUsers } from './honest/honest.ts';
import { baselinePhase, judgeFailures, judgeFootprints, judgeLatency, judgeLedger, measure } from './invariants.ts';
import { latencies } from './latency.ts';
import { createRandom } from './random.ts';
import { type Pass, phaseOf, type Slot } from './schedule.ts';
import { watchReplicas } from './watch.ts';
import { startWorld, type World } from './world/world.ts';

export interface RunOptions {
  /** Of a Postgres on which databases may be created. */
  administratorUrl: string;
  passes: Pass[];
  /** Milliseconds of the baseline. */
  baseline: number;
  /** Milliseconds that a p99 may always take. */
  floor: number;
  /** Milliseconds for memory and descriptors to come back. */
  settling: number;
  print(line: string): void;
}

/** What did not hold, in words; nothing where all is well. */
export async function run(options: RunOptions): Promise<string[]> {
  const world = await startWorld(options.administratorUrl);
  options.print('the world is ready');
  const honest = startHonestUsers(world, createRandom(options.passes.map(({ seed }) => seed).join()));
  const attackers = startAttackers(world.addresses);
  const exits: string[] = [];
  world.onExit(({ replica, how, lastWords }) =>
    exits.push(`${replica} exited with ${how} (${honest.recorder.phase}): ${lastWords}`),
  );
  const watch = watchReplicas(world.replicas, () => honest.recorder.phase);
  try {
    await delay(1_500);
    honest.recorder.phase = baselinePhase;
    await delay(options.baseline);
    const footprints = await measure(world.replicas);
    const complaints: string[] = [];
    for (const { seed, slots } of options.passes)
      for (const slot of slots) complaints.push(...(await runSlot({ honest, attackers, seed, slot, options })));
    honest.recorder.phase = 'afterwards';
    const left = await judgeFootprints(footprints, world.replicas, options.settling);
    await honest.stop();
    return [
      ...exits,
      ...watch.findings(),
      ...complaints,
      ...judgeFailures(honest.recorder.failures),
      ...judgeLatency(honest.recorder.samples, options.floor),
      ...left,
      ...(await judgeLedger(honest.ledger, world)),
    ];
  } finally {
    await Promise.all([attackers.stop(), watch.stop()]);
    await end(honest, world);
  }
}

async function end(honest: HonestUsers, world: World): Promise<void> {
  await honest.stop().catch(() => undefined);
  await world.close();
}

interface SlotRun {
  honest: HonestUsers;
  attackers: Attackers;
  seed: string;
  slot: Slot;
  options: RunOptions;
}

async function runSlot({ honest: { recorder }, attackers, seed, slot, options }: SlotRun): Promise<string[]> {
  const { adversaries, milliseconds } = slot;
  recorder.phase = phaseOf(slot);
  const [samples, failures] = [recorder.samples.length, recorder.failures.length];
  const reports = await Promise.all(adversaries.map(({ name }) => attackers.order({ name, seed, milliseconds })));
  await delay(Math.max(...adversaries.map(({ recovery = 300 }) => recovery)));
  const { targets, forms } = latencies(recorder.samples.slice(samples), () => true);
  options.print(
    [
      recorder.phase.padEnd(46),
      `${recorder.samples.length - samples} requests`.padStart(13),
      `forms p99 ${forms?.p99.toFixed(0)} ms`.padStart(20),
      `targets p99 ${targets?.p99.toFixed(0)} ms`.padStart(22),
      `${recorder.failures.length - failures} not served`.padStart(15),
    ].join(''),
  );
  return reports.flatMap(({ complaints, failure }, index) =>
    [...complaints, ...(failure === undefined ? [] : [`the adversary failed: ${failure}`])].map(
      (what) => `${adversaries[index]?.name}: ${what}`,
    ),
  );
}
