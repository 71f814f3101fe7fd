// Tests that the traces in docs/ARCHITECTURE.md list the modules that take part in each request. It records these
// modules in real processes with a real Postgres. After a change, `FORMGATE_WRITE_TRACES=1 npx vitest run test/traces`
// writes the recorded modules to the page.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draft, drained, type FormProcess, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { call } from '../support/platform.ts';
import { type ReconcilerProcess, reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';
import { expectShort, expectTrace, recordRequest, registration, steadyModules } from './expect-trace.ts';
import { createRecording, type Recording } from './recording.ts';

/**
 * The dispatcher runs in the background during all requests. Only the trace of a lock and its notice includes the
 * dispatcher.
 */
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

async function record(work: Parameters<typeof recordRequest>[1]): Promise<string[]> {
  return (await recordRequest(recording, work)).filter((path) => !path.startsWith(dispatcher));
}

const body = { data: { name: 'Ana' }, files: {} };
const save = (id: string) => forms.ask('PUT', `/${id}/data`, { as: 'intake', body });

describe('ARCHITECTURE documents the modules of', () => {
  it('a save of form data, and they are few', async () => {
    const id = await draft(forms);
    await drained(world.pool);
    const modules = await record(() => save(id));
    expectTrace('Save form data', modules);
    expectShort(modules);
  });

  it('a register PATCH, and they are few', async () => {
    const token = world.token('admin');
    const url = `${forms.url}/form/v1/registers`;
    const created = await call(url, { method: 'POST', token, body: { name: 'cities', entries: ['Banff'] } });
    expect(created.status, created.text).toBe(201);
    const change = { description: 'Cities', entries: ['Banff', 'Jasper'] };
    const modules = await record(() => call(`${url}/cities`, { method: 'PATCH', token, body: change }));
    expectTrace('Register PATCH', modules);
    expectShort(modules);
  });

  it('a lock with its notice', async () => {
    const recordings: string[][] = [];
    // A third recording decides if two differ. Repeat a recording during which a registration was checked, as
    // `recordRequest` does.
    const areEqual = () => recordings.length === 2 && String(recordings[0]) === String(recordings[1]);
    for (let index = 0; recordings.length < 3 && !areEqual() && index < 9; index += 1) {
      const ids = [await draft(forms), await draft(forms), await draft(forms)];
      await drained(world.pool);
      await world.pool.query(
        "UPDATE forms SET last_accessed = last_accessed - interval '20 days' WHERE id = ANY($1::uuid[])",
        [ids],
      );
      const modules = await recordLock();
      if (!modules.includes(registration)) recordings.push(modules);
    }
    expectTrace('Lock with its notice', steadyModules(recordings));
  });

  it('a submit', async () => {
    // Make outbox rows never due, so that requests run the platform clients, but deliveries do not.
    await world.pool.query(`CREATE OR REPLACE FUNCTION postpone() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN NEW.not_before := 'infinity'; RETURN NEW; END $$;
      CREATE OR REPLACE TRIGGER postponed BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION postpone()`);
    const ids: string[] = [];
    // Each recording submits one of these drafts, and a recording may be repeated.
    for (let count = 0; count < 15; count += 1) {
      const id = await draft(forms);
      await save(id);
      ids.push(id);
    }
    const submit = () => forms.ask('POST', `/${ids.pop()}`, { as: 'intake', body: { operation: 'submit' } });
    expectTrace('Submit', await record(submit));
  });
});

/**
 * Locks three drafts in batches of one, and delivers their events. The recording in the reconciler begins during the
 * first batch, and ends when the reconciler has locked all drafts. At both points, the test stops the reconciler with a
 * table lock.
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
  // Timers also run modules of src/service/operations, such as the log.
  return [...new Set([...locked, ...delivered])].filter((path) => !path.startsWith('src/service/operations/')).sort();
}

async function endOf(recorded: Recording, release: () => Promise<void>): Promise<string[]> {
  try {
    return await recorded.take();
  } finally {
    await release();
  }
}

/** Locks a table until `release` is called. */
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

/** Resolves when a batch of the reconciler waits for the lock of the table. */
async function waitsFor(table: string, run: ReconcilerProcess): Promise<void> {
  const sql = `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND relation = $1::regclass AND query LIKE '%page AS MATERIALIZED%'`;
  for (let waited = 0; waited < 60_000; waited += 20) {
    if ((await world.pool.query(sql, [table])).rowCount) return;
    await sleep(20);
  }
  throw new Error(`The reconciler does not wait for ${table}: ${run.output()}`);
}
