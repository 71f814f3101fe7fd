// The traces in docs/ARCHITECTURE.md are the modules that take part in each request: recorded here in real processes with
// a real Postgres. After a change, FORMGATE_WRITE_TRACES=1 npx vitest run test/traces writes what was recorded.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draft, drained, type FormProcess, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { call } from '../support/platform.ts';
import { type ReconcilerProcess, reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';
import { createRecording, type Recording } from './recording.ts';
import { documentedModules, groupsOf, withTrace } from './trace-page.ts';

const root = join(import.meta.dirname, '../..');
const pagePath = join(root, 'docs/ARCHITECTURE.md');

/** At most so many modules beside the shared ones, and so many of src/service/http, each with so many lines. */
const most = { own: 6, http: 8, lines: 250 };
/** Watch the process and its pools by timers, whatever is requested. */
const watchers = [
  'src/service/operations/event-loop-watch.ts',
  'src/service/postgres/pool-watch.ts',
  'src/service/time-limit.ts',
];
/** Delivers in the background while requests are served. It has its part in the trace of a lock and its notice. */
const dispatcher = 'src/forms/outbox/';

let world: FormWorld;
let forms: FormProcess;
const recording = createRecording();
beforeAll(async () => {
  world = await startFormWorld();
  forms = await world.spawn(recording.env);
});
afterAll(async () => {
  await world.close();
  recording.discard();
});

/**
 * The modules that run in at least two of three recordings of the same request. The first requests are not recorded: they
 * fill caches. The pauses let the log line of a request end before the next recording begins.
 */
async function recordRequest(work: () => Promise<{ status: number; text: string }>): Promise<string[]> {
  const counts = new Map<string, number>();
  for (let index = -2; index < 3; index += 1) {
    await recording.start();
    const { status, text } = await work();
    expect(status, text).toBe(200);
    await sleep(100);
    const modules = await recording.take();
    if (index >= 0) for (const path of modules) counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  const steady = [...counts].filter(([, count]) => count > 1).map(([path]) => path);
  return steady.filter((path) => !watchers.includes(path) && !path.startsWith(dispatcher)).sort();
}

/** Compares with the page, or writes the page where the environment says so. */
function expectTrace(name: string, modules: string[]): void {
  const page = readFileSync(pagePath, 'utf8');
  if (process.env.FORMGATE_WRITE_TRACES) writeFileSync(pagePath, withTrace(page, { name, modules }));
  const documented = documentedModules(readFileSync(pagePath, 'utf8'), name);
  expect(documented.toSorted(), 'FORMGATE_WRITE_TRACES=1 writes the lists').toEqual(modules);
  const { http } = groupsOf(modules);
  expect(http.length).toBeLessThanOrEqual(most.http);
  for (const path of http)
    expect(readFileSync(join(root, path), 'utf8').split('\n').length, path).toBeLessThanOrEqual(most.lines);
}

const expectShort = (modules: string[]) => expect(groupsOf(modules).own.length).toBeLessThanOrEqual(most.own);

const body = { data: { name: 'Ana' }, files: {} };
const save = (id: string) => forms.ask('PUT', `/${id}/data`, { as: 'intake', body });

describe('the trace of', () => {
  it('saving form data is the documented one, and short', async () => {
    const id = await draft(forms);
    await drained(world.pool);
    const modules = await recordRequest(() => save(id));
    expectTrace('Save form data', modules);
    expectShort(modules);
  });

  it('a register PATCH is the documented one, and short', async () => {
    const token = world.token('admin');
    const url = `${forms.url}/form/v1/registers`;
    await call(url, { method: 'POST', token, body: { name: 'cities', entries: ['Banff'] } });
    const change = { description: 'Cities', entries: ['Banff', 'Jasper'] };
    const modules = await recordRequest(() => call(`${url}/cities`, { method: 'PATCH', token, body: change }));
    expectTrace('Register PATCH', modules);
    expectShort(modules);
  });

  it('a lock with its notice is the documented one', async () => {
    const ids = [await draft(forms), await draft(forms), await draft(forms)];
    await drained(world.pool);
    await world.pool.query(
      "UPDATE forms SET last_accessed = last_accessed - interval '20 days' WHERE id = ANY($1::uuid[])",
      [ids],
    );
    expectTrace('Lock with its notice', await recordLock());
  });

  it('a submit is the documented one', async () => {
    // Rows that are never due: the dispatcher delivers nothing meanwhile, so platform clients run only for requests.
    await world.pool.query(`CREATE FUNCTION postpone() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN NEW.not_before := 'infinity'; RETURN NEW; END $$;
      CREATE TRIGGER postponed BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION postpone()`);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      const id = await draft(forms);
      await save(id);
      ids.push(id);
    }
    const submit = () => forms.ask('POST', `/${ids.pop()}`, { as: 'intake', body: { operation: 'submit' } });
    expectTrace('Submit', await recordRequest(submit));
  });
});

/**
 * Locks three drafts in batches of one, and delivers their events. The recording in the reconciler lasts from within the
 * first batch to the beginning of the next stage: table locks of the test hold the run at these points.
 */
async function recordLock(): Promise<string[]> {
  const recorded = createRecording();
  const settings = { WARN_BEFORE: 'P0D', BATCH_SIZE: '1', CORE_CLIENTS: 'off' };
  const [outbox, tombstones] = [await hold('outbox'), await hold('tombstones')];
  const run = spawnReconciler({ ...reconcilerEnv(world.platform, world.databaseUrl), ...settings, ...recorded.env });
  try {
    await waitsFor('outbox', run);
    await recorded.start();
    await recording.start();
    await outbox.release();
    await waitsFor('tombstones', run);
  } finally {
    await outbox.release();
  }
  const locked = await endOf(recorded, tombstones.release);
  await drained(world.pool);
  const delivered = await recording.take();
  expect((await run.ended).code, run.output()).toBe(0);
  recorded.discard();
  // What the process logs, and when, depends on its timers too.
  const isTimed = (path: string) => watchers.includes(path) || path.startsWith('src/service/operations/');
  return [...new Set([...locked, ...delivered])].filter((path) => !isTimed(path)).sort();
}

async function endOf(recorded: Recording, release: () => Promise<void>): Promise<string[]> {
  try {
    return await recorded.take();
  } finally {
    await release();
  }
}

/** Locks a table until it is released. */
async function hold(table: string): Promise<{ release(): Promise<void> }> {
  const client: pg.PoolClient = await world.pool.connect();
  await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  let isHeld = true;
  return {
    async release() {
      if (!isHeld) return;
      isHeld = false;
      await client.query('COMMIT');
      client.release();
    },
  };
}

/** Resolves when a batch of the reconciler waits for the table. */
async function waitsFor(table: string, run: ReconcilerProcess): Promise<void> {
  const sql = `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND relation = $1::regclass AND query LIKE '%page AS MATERIALIZED%'`;
  for (let waited = 0; waited < 20_000; waited += 20) {
    if ((await world.pool.query(sql, [table])).rowCount) return;
    await sleep(20);
  }
  throw new Error(`The reconciler does not wait for ${table}: ${run.output()}`);
}
