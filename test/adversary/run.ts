// One run: a baseline with honest users only, then the adversaries of each pass, with further parts of the baseline
// between them and at the end. Returns the problems that it found.
import { setTimeout as delay } from 'node:timers/promises';
import { type Attackers, startAttackers } from './attackers.ts';
import { type HonestUsers, startHonestUsers } from './honest/honest.ts';
import { baselinePhase, judgeFailures, judgeFootprints, judgeLatency, judgeLedger, measure } from './invariants.ts';
import { latencies } from './latency.ts';
import { judgeOutput } from './output.ts';
import { createRandom } from './random.ts';
import { phaseOf, type Slot } from './schedule.ts';
import { watchReplicas } from './watch.ts';
import { startWorld } from './world/world.ts';

export interface RunOptions {
  /** URL of a Postgres on which databases may be created. */
  administratorUrl: string;
  slots: Slot[];
  /**
   * Duration of the baseline before the adversaries, and of the one after them, in milliseconds. Each part between them
   * takes a third as long.
   */
  baseline: number;
  /** A p99 below this many milliseconds is never too slow. */
  floor: number;
  /** Milliseconds within which memory and file descriptors of the replicas must return to the baseline. */
  settling: number;
  print(line: string): void;
}

/** Number of slots after which a part of the baseline follows. */
const slotsBetween = 6;

/** Returns descriptions of the invariants that did not hold. */
export async function run(options: RunOptions): Promise<string[]> {
  const world = await startWorld(options.administratorUrl);
  options.print('the world is ready');
  const honest = startHonestUsers(world, createRandom(options.slots.map(({ seed }) => seed).join()));
  const attackers = startAttackers(world.addresses);
  const exits: string[] = [];
  const problems: string[] = [];
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
    for (const [index, slot] of options.slots.entries()) {
      // The speed of a machine drifts, so a baseline from the beginning alone would say little about the rest.
      if (index > 0 && index % slotsBetween === 0) await measureBaseline(honest, options.baseline / 3);
      complaints.push(...(await runSlot({ honest, attackers, slot, options })));
    }
    await attackers.stop();
    honest.recorder.phase = 'afterwards';
    const left = await judgeFootprints(footprints, world.replicas, options.settling);
    options.print('memory and descriptors were compared with their baseline');
    honest.recorder.phase = baselinePhase;
    await delay(options.baseline);
    await honest.stop();
    options.print('the honest users have stopped');
    const lost = await judgeLedger(honest.ledger, world);
    options.print(`${honest.ledger.entries().length} forms were read back`);
    problems.push(
      ...exits,
      ...watch.findings(),
      ...complaints,
      ...judgeFailures(honest.recorder.failures),
      ...judgeLatency(honest.recorder.samples, options.floor),
      ...left,
      ...lost,
      ...(await judgeOutput(world.replicas)),
    );
    return problems;
  } finally {
    await Promise.all([attackers.stop(), watch.stop()]);
    await honest.stop().catch(() => undefined);
    if (problems.length > 0) options.print(`the logs of the replicas are in ${world.keepLogs()}`);
    await world.close();
  }
}

/** Measures a part of the baseline. Requests that begin during the pause before it do not count. */
async function measureBaseline({ recorder }: HonestUsers, milliseconds: number): Promise<void> {
  recorder.phase = 'pause';
  await delay(500);
  recorder.phase = baselinePhase;
  await delay(milliseconds);
}

interface SlotRun {
  honest: HonestUsers;
  attackers: Attackers;
  slot: Slot;
  options: RunOptions;
}

async function runSlot({ honest: { recorder }, attackers, slot, options }: SlotRun): Promise<string[]> {
  const { seed, adversaries, milliseconds } = slot;
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
