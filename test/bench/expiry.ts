// The expiry bench. Measures how fast the reconciler locks due drafts, how fast the outbox dispatcher delivers their
// events, and how much both slow down the saves of applicants. The report shows the goal beside each figure.
import { setTimeout as delay } from 'node:timers/promises';
import { permit } from '../support/forms.ts';
import { fillDrafts } from './expiry-drafts.ts';
import { compareLocks, contenders, definitionsOf } from './expiry-lock.ts';
import { type Applicants, createApplicants } from './expiry-puts.ts';
import { type BenchRun, type ExpiryBench, startExpiryBench } from './expiry-world.ts';
import { type Figure, single } from './figures.ts';
import { quantile } from './latency.ts';

const drafts = Number(process.env.BENCH_DRAFTS || 100_000);
const rounds = Number(process.env.BENCH_ROUNDS || 2);
/** Number of drafts that each contender locks in the comparison of lock statements. */
const compared = Math.min(drafts, 50_000);
const drainSeconds = 30;
/** Number of due drafts that are added before each round of saves. */
const draftsOfRound = 60_000;
/** Milliseconds during which applicants save in one slice. */
const sliceLength = 1_000;
/**
 * Milliseconds of unmeasured saves before each slice: a reconciler that was just paused or resumed takes time to
 * settle.
 */
const settling = 200;
/** Milliseconds of unmeasured saves before the first slice: a service that was idle is slow at first. */
const warmUp = 3_000;

export async function benchExpiry(): Promise<Figure[]> {
  const bench = await startExpiryBench();
  try {
    const tenth = await runOn(bench, drafts / 10);
    const whole = await runOn(bench, drafts);
    const runs = reportRuns(tenth, whole);
    await compareStatements(bench);
    const forms = await bench.startForms();
    const drain = await measureDrain(bench, forms.cpuSeconds);
    const applicants = await createApplicants(forms.url, bench.token, 100);
    const saves = await measureSaves(bench, applicants);
    await applicants.close();
    return [...runs, drain, ...saves];
  } finally {
    await bench.close();
  }
}

const number = (value: number) => Math.round(value).toLocaleString('en');
const mib = (bytes: number) => `${Math.round(bytes / 1_048_576)} MiB`;

async function fill({ pool, tenant }: ExpiryBench, count: number, definitions = [permit.id]): Promise<void> {
  const started = performance.now();
  await fillDrafts(pool, { tenant, definitions, count });
  console.error(`  ${number(count)} drafts created in ${number((performance.now() - started) / 1_000)} s`);
}

async function runOn(bench: ExpiryBench, count: number): Promise<BenchRun> {
  await fill(bench, count);
  const run = await bench.reconcile();
  if (run.counts.locked !== count) throw new Error(`${run.counts.locked} of ${count} drafts were locked`);
  console.error(`  ${number(count)} drafts locked in ${number(run.milliseconds)} ms`);
  return run;
}

function reportRuns(tenth: BenchRun, whole: BenchRun): Figure[] {
  const rate = ({ counts, milliseconds }: BenchRun) => ((counts.locked ?? 0) / milliseconds) * 1_000;
  console.log(`\nA run of the reconciler on due drafts of 4 KiB`);
  for (const run of [tenth, whole])
    console.log(
      `  ${number(run.counts.locked ?? 0).padStart(9)} locked in ${(run.milliseconds / 1_000).toFixed(1)} s,` +
        ` ${number(rate(run))} per second, RSS at most ${mib(run.residentBytes)} (goal 150 MiB)`,
    );
  console.log(`  ten times the rows: ${(whole.milliseconds / tenth.milliseconds).toFixed(1)} times as long (goal 11)`);
  return [
    {
      ...{ name: `expiry: drafts locked per second, ${number(drafts)} due and nothing else to do`, least: 20_000 },
      ...{ ...single(rate(whole)), digits: 0 },
    },
    { name: 'expiry: MiB resident', ...single(whole.residentBytes / 1_048_576), most: 150, digits: 0 },
  ];
}

async function compareStatements(bench: ExpiryBench): Promise<void> {
  await fill(
    bench,
    compared * 3,
    contenders.map((name) => definitionsOf[name]),
  );
  const results = await compareLocks(bench.pool, bench.tenant);
  const [base] = results;
  console.log(
    `\nBatches of 1,000, alternating, ${number(compared)} drafts each, ${number(drafts * 1.1)} others in the table`,
  );
  for (const { name, total, batch, locked } of results) {
    const ratios = `ratio ${((base?.total ?? 0) / total).toFixed(2)}, of medians ${((base?.batch ?? 0) / batch).toFixed(2)}`;
    console.log(
      `  ${name.padEnd(21)} ${number((locked / total) * 1_000).padStart(7)} per second, ${batch.toFixed(1).padStart(6)} ms` +
        (name === base?.name ? '' : `   ${ratios} (goal 2)`),
    );
  }
}

/**
 * Measures how fast the dispatcher delivers the events of the reconciler's runs: one outbox row for each locked draft.
 */
async function measureDrain(bench: ExpiryBench, cpuSeconds: () => Promise<number>): Promise<Figure> {
  const backlog = await undelivered(bench);
  await bench.pool.query('ANALYZE outbox');
  while ((await bench.sunk()) < 500) await delay(20);
  const [from, cpu, started] = [await bench.sunk(), await cpuSeconds(), performance.now()];
  while (performance.now() - started < drainSeconds * 1_000 && (await bench.sunk()) < backlog) await delay(100);
  const seconds = (performance.now() - started) / 1_000;
  const sent = (await bench.sunk()) - from;
  const byCpu = sent / ((await cpuSeconds()) - cpu);
  console.log(`\nThe outbox dispatcher of one form service, ${number(backlog)} events to deliver`);
  console.log(`  ${number(sent / seconds)} per second, ${number(byCpu)} per CPU second`);
  await bench.pool.query('TRUNCATE outbox');
  return { name: 'outbox: deliveries per second of one pod', ...single(sent / seconds), least: 3_000, digits: 0 };
}

interface Saves {
  quiet: number[];
  dispatcher: number[];
  run: number[];
}

/**
 * Measures saves in three phases: while the reconciler and the dispatcher work (`run`), while only the dispatcher works
 * (`dispatcher`), and with a paused reconciler and an empty outbox (`quiet`). Pauses and resumes the reconciler to
 * alternate between short slices of the phases, so that a drift of the machine's speed affects all phases alike.
 */
async function measureSaves(bench: ExpiryBench, applicants: Applicants): Promise<Figure[]> {
  const saves: Saves = { quiet: [], dispatcher: [], run: [] };
  const slice = async (of: keyof Saves) => {
    await applicants.save(settling);
    saves[of].push(...(await applicants.save(sliceLength)));
  };
  for (let round = 0; round < rounds; round += 1) {
    await fill(bench, draftsOfRound);
    await emptyOutbox(bench);
    await applicants.save(warmUp);
    let isOver = false;
    let signal: (name: NodeJS.Signals) => void = () => undefined;
    const run = bench
      .reconcile((send) => {
        signal = send;
      })
      .finally(() => {
        isOver = true;
      });
    while (!isOver) {
      // Between two batches of the reconciler, the outbox may be empty. Wait until it has rows again.
      while ((await undelivered(bench)) === 0 && !isOver) await delay(20);
      if (isOver) break;
      await slice('run');
      signal('SIGSTOP');
      await slice('dispatcher');
      await emptyOutbox(bench);
      await slice('quiet');
      signal('SIGCONT');
    }
    await run;
    console.error(`  round ${round + 1} of ${rounds}: ${number(saves.run.length)} saves during a run so far`);
  }
  // Take the p99 of all saves of a phase, not of each slice: a slice has only 100 saves, so its p99 would be its
  // slowest save.
  const p99 = (of: keyof Saves) => quantile(saves[of], 0.99);
  const describe = (of: keyof Saves) => `${p99(of).toFixed(1)} ms, ratio ${(p99(of) / p99('quiet')).toFixed(2)}`;
  console.log(
    `\nSaves of 4 KiB, 100 per second: p99 of ${number(saves.run.length)} each, in slices of ${sliceLength / 1_000} s`,
  );
  console.log(`  without a run                     ${p99('quiet').toFixed(1)} ms`);
  console.log(`  while the dispatcher delivers     ${describe('dispatcher')}`);
  console.log(`  during a run, with dispatcher     ${describe('run')}`);
  const ratio = (of: keyof Saves) => ({ ...single(p99(of) / p99('quiet')), most: 1.3, digits: 2 });
  return [
    { name: 'p99 of saves during a run of the expiry ÷ without one', ...ratio('run') },
    { name: 'p99 of saves while the outbox is delivered ÷ without deliveries', ...ratio('dispatcher') },
  ];
}

async function undelivered({ pool }: ExpiryBench): Promise<number> {
  return (await pool.query('SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL')).rows[0].n;
}

/**
 * Marks all outbox rows as delivered. Does not truncate the table, because a stopped reconciler may hold a lock on it.
 */
async function emptyOutbox({ pool }: ExpiryBench): Promise<void> {
  await pool.query('UPDATE outbox SET accepted = now() WHERE accepted IS NULL');
  await delay(300);
}
