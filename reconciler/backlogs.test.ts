// Tests that a tenant with very many due forms does not delay the expiry of other tenants' forms.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expiryStore, type Stage } from '../src/forms/expiry/store.ts';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../test/support/expiry.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

/** Number of due forms that makes a backlog: more than 10,000. */
const many = 10_500;
/** Number of drafts that one statement copies. */
const pieces = 1_000;
/** The order in which definitions are read is that of the tenants' names. */
const [first, second, last] = [`${tenant}-1`, `${tenant}-2`, `${tenant}-9`];

/** Copies a draft of each tenant until the tenant has `many` drafts. */
async function fill(...tenants: string[]): Promise<void> {
  for (const tenantId of tenants) {
    const id = await world.add({ tenantId, age: 20 * day });
    // Postgres ends statements after a time, and one statement for all rows may take longer on a busy machine.
    for (let rest = many - 1; rest > 0; rest -= pieces)
      await world.pool.query(
        `INSERT INTO forms SELECT (jsonb_populate_record(f, jsonb_build_object('id', gen_random_uuid()))).*
         FROM forms f, generate_series(1, $2) WHERE f.id = $1`,
        [id, Math.min(rest, pieces)],
      );
  }
}

interface Seen {
  stage: Stage;
  /** The tenant with whose forms the batch begins. */
  tenantId: string | undefined;
}

/** Runs the expiry. Returns its batches in their order, and how many forms it locked. */
async function runExpiry(): Promise<{ seen: Seen[]; locked: number | undefined }> {
  const seen: Seen[] = [];
  const batch: typeof expiryStore.batch = (db, stage, options) => {
    seen.push({ stage, tenantId: options.position.policies[0]?.tenantId });
    return expiryStore.batch(db, stage, options);
  };
  const result = await world.run({ store: { ...expiryStore, batch } });
  expect(result).toMatchObject({ outcome: 'succeeded' });
  return { seen, locked: result.counts.locked };
}

const statusesOf = async (tenantId: string) => {
  const { rows } = await world.pool.query(
    'SELECT status, count(*)::int AS count FROM forms WHERE tenant_id = $1 GROUP BY status',
    [tenantId],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
};

describe('the forms of a tenant with very many due forms', () => {
  it('wait until the forms of the other tenants were locked and deleted', async () => {
    await fill(first);
    const draft = await world.add({ tenantId: last, age: 16 * day });
    const overdue = await world.add({ tenantId: last, lockedFor: 16 * day, noticeAccepted: true });
    const { seen, locked } = await runExpiry();
    expect(locked).toBe(many + 1);
    const begun = seen.findIndex(({ tenantId }) => tenantId === first);
    const others = seen.findLastIndex(({ tenantId }) => tenantId === last);
    expect(begun).toBeGreaterThan(others);
    expect(seen.slice(0, begun).map(({ stage }) => stage)).toEqual(expect.arrayContaining(['warn', 'lock', 'delete']));
    expect(await world.form(draft)).toMatchObject({ status: 'Locked' });
    expect(await world.form(overdue)).toBeUndefined();
    expect(await statusesOf(first)).toEqual({ Locked: many });
  });

  it('wait for the sync of core clients, which therefore happens even if the run is stopped meanwhile', async () => {
    await world.pool.query('DELETE FROM forms');
    await fill(first);
    const stop = new AbortController();
    const steps: string[] = [];
    const batch: typeof expiryStore.batch = (db, stage, options) => {
      steps.push(stage);
      if (stage === 'lock') stop.abort();
      return expiryStore.batch(db, stage, options);
    };
    const clients = {
      async sync() {
        steps.push('sync');
        return { counts: {}, conditions: {}, failures: [] };
      },
    };
    const result = await world.run({ signal: stop.signal, clients, store: { ...expiryStore, batch } });
    expect(result).toMatchObject({ outcome: 'stopped', conditions: {} });
    expect(steps.filter((step) => step === 'sync' || step === 'lock')).toEqual(['sync', 'lock']);
  });

  it('wait while too many events are undelivered, and are locked by a later run', async () => {
    await world.pool.query('DELETE FROM forms; DELETE FROM outbox');
    await fill(first);
    const dryRun = { only: undefined, dryRun: true, allowPrune: false };
    const run = (changes = {}) => world.run({ mostUndelivered: 5_000, ...changes });
    // The search for drafts to warn counts as one of the 10,000 forms.
    expect(await run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 9_999 } });
    expect(world.log.text()).toContain('expiry of a backlog paused: too many events are undelivered');
    await fill(first);
    expect(await run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 0 } });
    expect(await run({ arguments: dryRun })).toMatchObject({ counts: { locked: many + 501 } });
    await world.pool.query('UPDATE outbox SET accepted = $1', [world.now()]);
    expect(await run()).toMatchObject({ counts: { locked: 9_999 } });
  });

  it('are locked while too many events of another tenant are undelivered', async () => {
    await world.pool.query('DELETE FROM forms; DELETE FROM outbox');
    await fill(first);
    const run = () => world.run({ mostUndelivered: 5_000 });
    expect(await run()).toMatchObject({ counts: { locked: 9_999 } });
    await fill(second);
    // The rest of the first tenant's forms are too few for a backlog.
    expect(await run()).toMatchObject({ outcome: 'succeeded', counts: { locked: many } });
    expect((await statusesOf(second)).Locked).toBe(9_999);
    await world.pool.query('DELETE FROM outbox');
  });

  it('are locked in turn with those of another such tenant, and the counts contain all of them', async () => {
    await world.pool.query('DELETE FROM forms');
    await fill(first, second);
    const { seen, locked } = await runExpiry();
    expect(locked).toBe(2 * many);
    const locks = seen.filter(({ stage }) => stage === 'lock');
    expect(locks.findIndex(({ tenantId }) => tenantId === second)).toBeLessThan(
      locks.findLastIndex(({ tenantId }) => tenantId === first),
    );
    expect([await statusesOf(first), await statusesOf(second)]).toEqual([{ Locked: many }, { Locked: many }]);
  });
});
