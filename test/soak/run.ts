// One run: honest users and a steady load at half of the capacity, while replicas are deployed, the reconciler expires
// drafts, the key ring is rotated, and faults happen. One replica of each process keeps running during the whole
// measured time.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startHonestUsers } from '../adversary/honest/honest.ts';
import type { Failure } from '../adversary/honest/recorder.ts';
import { judgeLedger } from '../adversary/invariants.ts';
import { judgeOutput } from '../adversary/output.ts';
import { createRandom } from '../adversary/random.ts';
import type { World } from '../adversary/world/world.ts';
import { type FaultWorld, keepReconciling, startFaultWorld } from '../faults/fault-world.ts';
import { plan } from '../faults/schedule.ts';
import { createCanaries, measureRecovery } from '../faults/users/canaries.ts';
import { addOverdue } from '../support/overdue.ts';
import { judge, type Series } from './judge.ts';
import { startProbes } from './probes.ts';
import { keepSteady, measureCapacity, prepareSteadyLoad, type SteadyLoad } from './steady.ts';

export interface SoakOptions {
  /** URL of a Postgres on which databases may be created. */
  administratorUrl: string;
  /** Milliseconds of the measured time. */
  duration: number;
  seed: string;
  print(line: string): void;
}

export interface SoakResult {
  problems: string[];
  series: Series[];
  /** Requests per second that the replicas can serve. */
  capacity: number;
  /** Requests per second that the steady load sends. */
  rate: number;
  load: SteadyLoad;
  /** Number of requests that all users sent. */
  requests: number;
  counts: { faults: number; deploys: number; rotations: number; expiryRuns: number; failed: number };
  slowestRecovery: { fault: string; milliseconds: number };
}

const calm = 'calm';
/** Milliseconds between the end of one event (a fault or a deployment) and the next event. */
const pause = 20_000;
/**
 * Milliseconds after a fault in which everything must work again. The duration of the canary requests without a fault
 * is added.
 */
const recoveryLimit = 10_000;
const longestBaseline = 60_000;
/**
 * Milliseconds after a recovery in which failures are still attributed to the fault. A browser keeps idle connections
 * this long, and the fault may have left some connections half-open.
 */
const browsersForget = 5_000;
const overdueDrafts = { count: 40, days: 400, name: 'overdue' };

export async function soak({ administratorUrl, duration, seed, print }: SoakOptions): Promise<SoakResult> {
  const keys = [newKey('k1'), newKey('k2'), newKey('k3')] as const;
  const gentle = { DRAIN_DELAY: 'PT2S', DRAIN_DEADLINE: 'PT6S' };
  const running = await startFaultWorld({
    ...{ postgres: { url: administratorUrl }, topology: 'single', name: 'soak', demoTokenLifetime: 60 },
    env: {
      'platform-server': gentle,
      forms: gentle,
      'token-handler': {
        ...gentle,
        KEY_RING: keys[0],
        TARGET_SESSION_LIMIT: '1000000',
        TARGET_ADDRESS_LIMIT: '1000000',
      },
    },
  });
  const { world } = running;
  print('the world is ready');
  const problems: string[] = [];
  world.onExit(({ replica, how, lastWords }) => problems.push(`${replica} exited with ${how}: ${lastWords}`));
  const honest = startHonestUsers(world, createRandom(seed));
  const { recorder } = honest;
  const stopping = new AbortController();
  const { signal } = stopping;
  const counts = { faults: 0, deploys: 0, rotations: 0, expiryRuns: 0, failed: 0 };
  const pool = new pg.Pool({ connectionString: world.addresses.databases.forms, max: 1 });
  pool.on('error', () => undefined);
  try {
    recorder.phase = calm;
    const send = await prepareSteadyLoad(world, recorder);
    // Warm up and ignore the result: the first requests are slow, because their code is compiled.
    await measureCapacity(send, 30, 10_000);
    const capacity = await measureCapacity(send, 30, 15_000);
    const rate = capacity / 2;
    print(`${capacity.toFixed(0)} requests per second at most; the load is ${rate.toFixed(0)} per second`);
    const loading = keepSteady(send, rate, signal);
    const reconciling = keepReconciling(world.addresses.reconcilerEnv, {
      ...{ signal, pause: 15_000 },
      before: async () => {
        counts.expiryRuns += 1;
        const drafts = { ...overdueDrafts, tenantId: world.addresses.tenants.honest.id };
        // Adding drafts may fail during a fault of Postgres. More drafts are added before the next run.
        await addOverdue(pool, drafts).catch(() => undefined);
      },
    });
    const rotate = (ring: string) => rotation(world, recorder, ring).then(() => (counts.rotations += 1));
    const [first, second, third] = keys;
    await rotate([first, second].join(','));
    await rotate([second, first].join(','));
    print('the second key encrypts');
    const warm = recorder.samples.length;
    const probes = startProbes({ world, interval: 5_000, collectEvery: 12 });
    const slowestRecovery = await causeEvents({
      running,
      recorder,
      seed,
      until: Date.now() + duration,
      counts,
      problems,
      print,
    });
    const series = await probes.end(recorder.samples.slice(warm));
    // The first key stays in the ring: sessions that were not used since the first rotation are still encrypted with
    // it.
    await rotate([second, first, third].join(','));
    await rotate([third, second, first].join(','));
    print('the third key encrypts');
    recorder.phase = calm;
    await delay(5_000);
    stopping.abort();
    const [load] = await Promise.all([loading, reconciling]);
    await honest.stop();
    counts.failed = recorder.failures.length;
    problems.push(...judgeFailures(recorder.failures), ...judge(series), ...(await judgeLedger(honest.ledger, world)));
    problems.push(...(await judgeOutput(world.replicas)));
    print(`${honest.ledger.entries().length} forms were read back`);
    return {
      ...{ problems, series, capacity, rate, load, counts, slowestRecovery },
      requests: recorder.samples.length,
    };
  } finally {
    stopping.abort();
    await honest.stop().catch(() => undefined);
    if (problems.length > 0) print(`the logs of the replicas are in ${world.keepLogs()}`);
    await pool.end();
    await running.close();
  }
}

const newKey = (name: string) => `${name}:${randomBytes(32).toString('base64')}`;

interface Phased {
  phase: string;
}

/** Deploys a key ring to both replicas of the token handler, one after the other. */
async function rotation(world: World, recorder: Phased, ring: string): Promise<void> {
  for (const name of ['token-handler-0', 'token-handler-1']) await deploy(world, recorder, name, { KEY_RING: ring });
}

const deployPrefix = 'deploy of ';

async function deploy(world: World, recorder: Phased, name: string, changes = {}): Promise<void> {
  const replica = world.replicas.find(({ place }) => place.name === name);
  recorder.phase = `${deployPrefix}${name}`;
  await replica?.restart(changes);
  for (const deadline = Date.now() + 60_000; !(await replica?.prepared()); await delay(200))
    if (Date.now() > deadline) throw new Error(`${name} was not ready a minute after its deploy`);
  // The front checks readiness twice per second, so it needs a moment to notice that the replica is ready.
  await delay(1_500);
  recorder.phase = calm;
}

interface Events {
  running: FaultWorld;
  recorder: Phased & { failures: Failure[] };
  seed: string;
  until: number;
  counts: SoakResult['counts'];
  problems: string[];
  print(line: string): void;
}

/** Until the time `until`, repeats two faults and a deployment of the second replica of one process. */
async function causeEvents({ running, recorder, seed, until, counts, problems, print }: Events) {
  const { world, store } = running;
  const canaries = createCanaries(world);
  // Leave out faults of the identity provider. They make the outcome of a refresh unknown, which ends its session
  // (decision 0042), and the users of this run would not sign in again.
  const steps = plan(seed, 10_000, Object.keys(store.faults)).filter(
    ({ network }) => network?.link !== 'identity provider',
  );
  const deployed = world.replicas.map(({ place }) => place.name).filter((name) => name.endsWith('-1'));
  const slowest = { fault: '', milliseconds: 0 };
  const usual = await measureRecovery(canaries, longestBaseline);
  print(`the canaries take ${(usual.milliseconds / 1_000).toFixed(1)} s without a fault`);
  for (let index = 0; Date.now() < until; index += 1) {
    const [step, name] = [steps[index], deployed[Math.floor(index / 3) % deployed.length]];
    const failures = recorder.failures.length;
    if (index % 3 === 2 && name !== undefined) {
      counts.deploys += 1;
      await deploy(world, recorder, name);
      print(
        `${`${deployPrefix}${name}`.padEnd(44)}${`${recorder.failures.length - failures} not served`.padStart(24)}`,
      );
    } else if (step) {
      counts.faults += 1;
      recorder.phase = `fault: ${step.name}`;
      await running.inject(step);
      const { milliseconds, failing } = await measureRecovery(canaries, recoveryLimit + usual.milliseconds);
      await delay(browsersForget);
      recorder.phase = calm;
      const seconds = `${(milliseconds / 1_000).toFixed(1)} s to recover`;
      print(`${step.name.padEnd(44)}${seconds.padStart(24)}, ${recorder.failures.length - failures} not served`);
      if (failing.length > 0) problems.push(`10 s after ${step.name}, this does not work: ${failing.join(', ')}`);
      if (milliseconds > slowest.milliseconds) Object.assign(slowest, { fault: step.name, milliseconds });
    }
    await delay(Math.max(0, Math.min(pause, until - Date.now())));
  }
  return slowest;
}

/**
 * During a fault, requests may fail in the documented ways; during a deploy, event streams end. Wrong data and a lost
 * session are never excused.
 */
function judgeFailures(failures: Failure[]): string[] {
  const isExcused = ({ phase, kind, status, isWrong }: Failure) =>
    !isWrong &&
    ((phase.includes('fault: ') && [0, 502, 503, 504].includes(status)) ||
      (phase.includes(deployPrefix) && kind === 'events'));
  const counted = Map.groupBy(
    failures.filter((failure) => !isExcused(failure)),
    ({ kind, what, phase }) => `${kind}: ${what} (${phase})`,
  );
  return [...counted].map(([text, list]) => (list.length > 1 ? `${text}, ${list.length} times` : text));
}
