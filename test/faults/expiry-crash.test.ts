// Kills reconcilers and the dispatcher with SIGKILL while many drafts are locked. Three reconcilers always run
// concurrently, and each is killed. The notices are counted at the mail server. EXPIRY_DRAFTS is the number of drafts.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { drained, type FormProcess, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { type MailCounter, startMailCounter } from '../support/mail-counter.ts';
import { addOverdue } from '../support/overdue.ts';
import { type ReconcilerProcess, reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';
import { sizeOf } from '../support/sizes.ts';
import { until } from '../support/until.ts';

const size = sizeOf('EXPIRY_DRAFTS');
const wantedKills = sizeOf('EXPIRY_KILLS');
const patience = 70_000 + size * 60;
const lease = 1_500;

let world: FormWorld;
let mail: MailCounter;
let dispatcher: FormProcess;
beforeAll(async () => {
  mail = await startMailCounter();
  world = await startFormWorld({ platformEnv: { SMTP_URL: mail.url, WORKER_CONCURRENCY: '8' } });
  dispatcher = await startDispatcher();
  await until('the registration', () => dispatcher.logText().includes('registration written'));
});
afterAll(async () => {
  await world.close();
  await mail.close();
});

/** PLATFORM_TIMEOUT is short, because a claim of a dead dispatcher expires after six times PLATFORM_TIMEOUT. */
const startDispatcher = () => world.spawn({ PLATFORM_TIMEOUT: 'PT2S', LOG_LEVEL: 'info' });

const count = async (sql: string) =>
  (await world.pool.query<{ n: number }>(`SELECT count(*)::int AS n ${sql}`)).rows[0]?.n;
const lockedCount = async () => (await count("FROM forms WHERE status = 'Locked'")) ?? 0;

interface Ended {
  signal: NodeJS.Signals | null;
  code: number | null;
  outcome: unknown;
}

/** Keeps three reconcilers running until `stop` is called. A reconciler that ends is replaced. */
function keepThree(env: Record<string, string>) {
  const running = new Set<ReconcilerProcess>();
  const ended: Ended[] = [];
  let isOver = false;
  async function place(): Promise<void> {
    while (!isOver) {
      const reconciler = spawnReconciler(env, ['--only', 'expire']);
      running.add(reconciler);
      const { signal, code, lines } = await reconciler.ended;
      running.delete(reconciler);
      ended.push({ signal, code, outcome: lines.find(({ outcome }) => outcome !== undefined)?.outcome });
      await sleep(300);
    }
  }
  const places = [place(), place(), place()];
  return {
    running,
    ended,
    async stop() {
      isOver = true;
      await Promise.all(places);
    },
  };
}

async function untilMoreThan(locked: number): Promise<void> {
  await expect.poll(lockedCount, { timeout: patience, interval: 5 }).toBeGreaterThan(locked);
}

/**
 * Splits the drafts into one wave for each kill, so that each kill interrupts work. The first wave has half of the
 * drafts.
 */
function wavesOf(ids: string[]): string[][] {
  const part = Math.ceil(ids.length / 2 / (wantedKills - 1));
  const rest = ids.slice(ids.length / 2);
  const parts = Array.from({ length: wantedKills - 1 }, (_, nth) => rest.slice(nth * part, (nth + 1) * part));
  return [ids.slice(0, ids.length / 2), ...parts];
}

/** Makes drafts due, and kills the running processes at a random moment after the first of these drafts is locked. */
async function killAtRandom(running: Set<ReconcilerProcess>, ids: string[]): Promise<void> {
  let dispatcherStart = Promise.resolve();
  for (const [nth, wave] of wavesOf(ids).entries()) {
    const before = await lockedCount();
    await world.pool.query("UPDATE forms SET last_accessed = now() - interval '16 days' WHERE id = ANY($1)", [wave]);
    await untilMoreThan(before);
    await sleep(Math.random() * 120);
    // In the second wave, the processes are not killed, but stopped for longer than their lease. They continue while
    // other reconcilers work.
    const victims = [...running];
    for (const victim of victims) victim.kill(nth === 1 ? 'SIGSTOP' : 'SIGKILL');
    if (nth === 1) await sleep(2 * lease);
    for (const victim of victims) victim.kill('SIGCONT');
    if (nth % 2 === 1) continue;
    await dispatcherStart;
    await dispatcher.kill();
    dispatcherStart = startDispatcher().then((started) => {
      dispatcher = started;
    });
  }
  await dispatcherStart;
}

it('three reconcilers at once and a dispatcher, killed at random times, lock every due draft once, and each applicant gets one notice or the same again', {
  timeout: 4 * patience,
}, async () => {
  const tenantId = world.platform.tenant.id;
  const due = await addOverdue(world.pool, { tenantId, count: size, days: 1, name: 'due' });
  const held = await addOverdue(world.pool, { tenantId, count: 10, days: 99, held: true, name: 'held' });
  const young = await addOverdue(world.pool, { tenantId, count: 10, days: 1, name: 'young' });
  await drained(world.pool, patience);
  expect(await count('FROM forms WHERE subscriber_id IS NULL')).toBe(0);

  const env = {
    ...reconcilerEnv(world.platform, world.databaseUrl),
    BATCH_SIZE: String(Math.ceil(size / 600)),
    LEASE_DURATION: `PT${lease / 1_000}S`,
  };
  const reconcilers = keepThree(env);
  await killAtRandom(reconcilers.running, due);
  for (const reconciler of reconcilers.running) reconciler.kill('SIGKILL');
  await reconcilers.stop();
  // Reconcilers that were not killed succeeded, or left the work to another reconciler.
  for (const { signal, code, outcome } of reconcilers.ended)
    if (signal === null) expect([code, outcome]).toEqual([0, expect.stringMatching(/^(succeeded|skipped|lost)$/)]);
  const killed = reconcilers.ended.filter(({ signal }) => signal === 'SIGKILL').length;
  expect(killed).toBeGreaterThanOrEqual(wantedKills);

  await sleep(lease);
  const { lines } = await spawnReconciler(env, ['--only', 'expire']).ended;
  expect(lines.find(({ outcome }) => outcome !== undefined)).toMatchObject({ outcome: 'succeeded' });
  expect(
    await count("FROM forms WHERE status = 'Draft' AND NOT held AND last_accessed < now() - interval '15 days'"),
  ).toBe(0);
  // A change of status increases the revision by 1, so revision 2 means that the form was locked once.
  expect(await count("FROM forms WHERE status = 'Locked' AND revision = 2")).toBe(due.length);
  const untouched = [...held, ...young];
  const { rowCount } = await world.pool.query(
    "SELECT FROM forms WHERE id = ANY($1) AND status = 'Draft' AND revision = 1 AND warned IS NULL",
    [untouched],
  );
  expect(rowCount).toBe(untouched.length);
  expect(await count("FROM outbox WHERE kind <> 'subscribe'")).toBe(due.length);
  expect(await count("FROM (SELECT DISTINCT form_id FROM outbox WHERE kind = 'form-locked') AS told")).toBe(due.length);

  await drained(world.pool, patience);
  const left = 'SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM deliveries) AS left';
  await expect
    .poll(async () => (await world.platformPool.query(left)).rows, { timeout: patience, interval: 200 })
    .toEqual([{ left: '0' }]);
  const byAddress = Map.groupBy(mail.mails, ({ to }) => to);
  expect(new Set(byAddress.keys())).toEqual(new Set(due.map((_, n) => `due-${n + 1}@example.org`)));
  for (const mails of byAddress.values()) {
    expect(new Set(mails.map(({ messageId }) => messageId)).size).toBe(1);
    expect(mails[0]).toMatchObject({
      subject: expect.stringContaining('locked'),
      messageId: expect.stringMatching(/@/),
    });
  }
  expect(new Set(mail.mails.map(({ messageId }) => messageId)).size).toBe(due.length);
  process.stdout.write(
    `expiry: ${killed} reconcilers killed, ${mail.mails.length} mails to ${due.length} applicants\n`,
  );
});
