// One run with one Redis topology, a Postgres pair, and two replicas of each process behind fault proxies. Users work
// all the time, while one fault follows another. Returns the violations and the recovery times.
import { setTimeout as delay } from 'node:timers/promises';
import { startHonestUsers } from '../adversary/honest/honest.ts';
import type { Failure } from '../adversary/honest/recorder.ts';
import { judgeLedger } from '../adversary/invariants.ts';
import { judgeOutput } from '../adversary/output.ts';
import { createRandom, type Random } from '../adversary/random.ts';
import { type FaultWorld, failover, keepReconciling, startFaultWorld } from './fault-world.ts';
import { findUnnotifiable, judgeEffects, judgeEvents, judgeForms, judgeNotices } from './model.ts';
import { plan, type Step } from './schedule.ts';
import type { PostgresPair } from './stores/postgres-pair.ts';
import type { TopologyName } from './topologies.ts';
import { type Application, keepApplying } from './users/applications.ts';
import { type Call, keepCalling } from './users/caller.ts';
import { type Canary, createCanaries, measureRecovery } from './users/canaries.ts';

interface RunOptions {
  postgres: PostgresPair;
  topology: TopologyName;
  seed: string;
  /** Smallest number of faults. Further faults follow until the time `until` has passed. */
  faults: number;
  /** Time until which further faults follow, as `Date.now()` returns it. */
  until: number;
  print(line: string): void;
}

export interface RunResult {
  problems: string[];
  recoveries: { fault: string; milliseconds: number }[];
}

/**
 * Milliseconds in which everything must work again after a fault, in addition to the time that the canary requests take
 * without a fault.
 */
const recoveryLimit = 10_000;
const longestBaseline = 60_000;
/** More steps than any run has time for. */
const mostSteps = 10_000;

export async function run(options: RunOptions): Promise<RunResult> {
  const { topology, seed, print } = options;
  const running = await startFaultWorld({ postgres: options.postgres, topology, name: 'faults' });
  const { world, store } = running;
  print(`${topology}: the world is ready`);
  const problems: string[] = [];
  const recoveries: RunResult['recoveries'] = [];
  world.onExit(({ replica, how, lastWords }) => problems.push(`${replica} exited with ${how}: ${lastWords}`));
  const users = startUsers(running, createRandom(seed), (what) => problems.push(what));
  const canaries = createCanaries(world);
  try {
    // On a busy machine, the canary requests take time even without a fault, so this time is added to the limit.
    const usual = await measureRecovery(canaries, longestBaseline);
    print(`${topology}: the canaries take ${(usual.milliseconds / 1_000).toFixed(1)} s without a fault`);
    if (usual.failing.length > 0) throw new Error(`Without a fault, this does not work: ${usual.failing.join(', ')}.`);
    const limit = recoveryLimit + usual.milliseconds;
    await users.begun;
    const steps = plan(seed, mostSteps, [failover, ...Object.keys(store.faults)]);
    for (const [index, step] of steps.entries()) {
      if (index >= options.faults && Date.now() > options.until) break;
      users.recorder.phase = `fault: ${step.name}`;
      await running.inject(step);
      const { milliseconds, failing } = await recover({ step, canaries, limit }, users.recorder.failures, problems);
      print(`${topology}: ${step.name.padEnd(44)}${(milliseconds / 1_000).toFixed(1).padStart(6)} s to recover`);
      recoveries.push({ fault: step.name, milliseconds });
      if (failing.length > 0) break;
      users.recorder.phase = calm;
      await delay(300);
    }
    // `stop` rejects if a user could not begin or does not stop.
    await users.stop().catch((error: Error) => problems.push(`${error.message}: ${error.cause}`));
    problems.push(...judgeFailures(users.recorder.failures), ...(await judge(users, running, print)));
    problems.push(...(await judgeOutput(world.replicas)));
    return { problems, recoveries };
  } finally {
    await users.stop().catch(() => undefined);
    if (problems.length > 0) print(`${topology}: the logs of the replicas are in ${world.keepLogs()}`);
    await running.close();
  }
}

const calm = 'calm';

interface Recovering {
  step: Step;
  canaries: Canary[];
  /** Milliseconds that the recovery may take. */
  limit: number;
}

async function recover({ step: { name }, canaries, limit }: Recovering, failures: Failure[], problems: string[]) {
  const recovery = await measureRecovery(canaries, limit);
  if (recovery.failing.length > 0) {
    const last = failures.slice(-5).map(({ what }) => what);
    problems.push(
      `${(limit / 1_000).toFixed(1)} s after ${name}, this does not work: ${recovery.failing.join(', ')} (${last.join('; ')})`,
    );
  }
  return recovery;
}

function startUsers({ world }: FaultWorld, random: Random, complain: (what: string) => void) {
  const { addresses } = world;
  const stopping = new AbortController();
  const { signal } = stopping;
  const [applications, calls]: [Application[], Call[]] = [[], []];
  const honest = startHonestUsers(world, random);
  const { intake, administrator } = addresses.tokens;
  const applicant = { formsUrl: addresses.fronts.forms, intake, administrator, random, signal, applications, complain };
  const person = addresses.mallory.at(-1);
  const site = addresses.fronts['token-handler'];
  const working = Promise.all([
    keepApplying(applicant),
    keepApplying(applicant),
    ...(person ? [keepCalling({ site, person, signal, calls })] : []),
    keepReconciling(addresses.reconcilerEnv, { signal }),
  ]);
  let ended: Promise<void> | undefined;
  const end = async () => {
    stopping.abort();
    await Promise.all([honest.stop(), working]);
  };
  const stop = () => {
    ended ??= end();
    return ended;
  };
  return { ...{ recorder: honest.recorder, ledger: honest.ledger, begun: honest.begun, applications, calls }, stop };
}

/** During a fault, requests may fail in the documented ways. Wrong data and a lost session are never excused. */
function judgeFailures(failures: Failure[]): string[] {
  const isExcused = ({ phase, status, isWrong }: Failure) =>
    !isWrong && phase !== calm && [0, 502, 503, 504].includes(status);
  const unexcused = failures.filter((failure) => !isExcused(failure));
  const counts = Map.groupBy(unexcused, ({ kind, what, phase }) => `${kind}: ${what} (${phase})`);
  return [...counts].map(([text, list]) => (list.length > 1 ? `${text}, ${list.length} times` : text));
}

async function judge(users: ReturnType<typeof startUsers>, running: FaultWorld, print: RunOptions['print']) {
  const { world, effects } = running;
  const { applications, calls, ledger, recorder } = users;
  const events = await judgeEvents(world);
  const unnotifiable = await findUnnotifiable(world.addresses.databases.forms);
  const { problems: notices, ...mails } = judgeNotices(applications, world.mailbox, unnotifiable);
  print(
    `${applications.length} applications, ${mails.notices} notices (${mails.repeated} repeated), ${calls.length} calls, ` +
      `${recorder.samples.length} requests, ${recorder.failures.length} not served during faults`,
  );
  return [
    ...events,
    ...notices,
    ...(await judgeForms(applications, world)),
    ...judgeEffects(calls, effects),
    ...(await judgeLedger(ledger, world)),
  ];
}
