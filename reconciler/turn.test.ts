// One run at a time: who gets the turn, how it ends, and that a run without it writes nothing.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRunStore } from '../src/forms/expiry/run-store.ts';
import { createExpiryStore } from '../src/forms/expiry/store.ts';
import { day, type ExpiryWorld, startExpiryWorld } from '../test/support/expiry.ts';
import { type Turn, TurnLostError, takeTurn } from './turn.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

const lease = 60_000;

async function take(): Promise<Turn> {
  const turn = await takeTurn({ pool: world.pool, clock: world.now, lease });
  if (!turn) throw new Error('the turn is not free');
  // As if its process had died: it gives no sign of life by itself.
  turn.abandon();
  return turn;
}

const giveBack = (turn: Turn) => turn.release(async () => undefined);
const runs = async () => (await world.pool.query('SELECT FROM reconciler_runs')).rowCount;

describe('the turn', () => {
  it('is one run’s: three runs at once are one that works and two that are skipped', async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => world.add({ age: 16 * day })));
    const before = (await runs()) ?? 0;
    const store = createExpiryStore();
    let skipped = 0;
    const one = async () => {
      const result = await world.run({
        batchSize: 5,
        store: {
          ...store,
          // Only who has the turn gets here: the other two have to come by in its time.
          async definitions(db) {
            await expect.poll(() => skipped, { timeout: 20_000 }).toBe(2);
            return store.definitions(db);
          },
        },
      });
      if (result.outcome === 'skipped') skipped += 1;
      return result;
    };
    const results = await Promise.all([one(), one(), one()]);
    expect(results.map(({ outcome }) => outcome).sort()).toEqual(['skipped', 'skipped', 'succeeded']);
    expect(results.map(({ counts }) => counts.locked ?? 0).sort()).toEqual([0, 0, 50]);
    for (const id of ids) expect(await world.outbox(id)).toHaveLength(1);
    expect(await runs()).toBe(before + 1);
  });

  it('that another run holds is not waited for: nothing is done and nothing recorded', async () => {
    const turn = await take();
    const id = await world.add({ age: 16 * day });
    const before = await runs();
    expect(await world.run()).toMatchObject({ outcome: 'skipped', counts: {}, failures: [] });
    expect(await world.form(id)).toMatchObject({ status: 'Draft' });
    expect(await runs()).toBe(before);
    await giveBack(turn);
    expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 1 } });
  });

  it('of a holder that died is free when its lease is over, and not before', async () => {
    const dead = await take();
    world.advance(lease - 1);
    expect(await world.run()).toMatchObject({ outcome: 'skipped' });
    world.advance(1);
    expect(await world.run()).toMatchObject({ outcome: 'succeeded' });
    await expect(giveBack(dead)).rejects.toThrow(TurnLostError);
  });

  it('is kept by signs of life, which every transaction gives', async () => {
    const turn = await take();
    world.advance(lease - 1);
    await turn.transact(async () => undefined);
    world.advance(lease - 1);
    await turn.assert();
    world.advance(lease - 1);
    expect(await takeTurn({ pool: world.pool, clock: world.now, lease })).toBeUndefined();
    await giveBack(turn);
  });

  it('that was given back is free, though a sign of life was on its way', async () => {
    const turn = await take();
    let late: Promise<unknown> | undefined;
    await turn.release(async () => {
      // It waits for the row that the release has locked.
      late = turn.assert().catch((error: unknown) => error);
      const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      await expect.poll(async () => (await world.pool.query(waits)).rowCount, { timeout: 10_000 }).toBe(1);
    });
    expect(await late).toBeInstanceOf(TurnLostError);
    await giveBack(await take());
  });

  it('cannot be taken from a holder that is in the middle of a transaction, however late', async () => {
    const turn = await take();
    await turn.transact(async () => {
      world.advance(2 * lease);
      expect(await takeTurn({ pool: world.pool, clock: world.now, lease })).toBeUndefined();
    });
    await giveBack(turn);
  });

  it('that was lost lets nothing be written: no batch, no record, no release', async () => {
    const lost = await take();
    world.advance(lease);
    const id = await world.add({ age: 16 * day });
    const present = await take();
    expect(BigInt(present.generation)).toBe(BigInt(lost.generation) + 1n);
    const before = await runs();
    const policies = [
      { tenantId: '', definitionId: 'permit', retention: { warnBefore: 0, lockAfter: 0, deleteAfter: 0 } },
    ];
    const batch = { place: { policies }, now: world.now(), limit: 10, dryRun: false };
    const record = {
      ...{ generation: lost.generation, started: world.now(), finished: world.now(), outcome: 'succeeded' as const },
      ...{
        expirySucceeded: true,
        clientsSucceeded: true,
        counts: {},
        conditions: null,
        oldestOverdue: null,
        overdueDeletions: null,
      },
    };
    const writes = await Promise.allSettled([
      lost.transact((client) => createExpiryStore().batch(client, 'lock', batch)),
      lost.release((client) => createRunStore().write(client, record)),
      lost.assert(),
    ]);
    for (const write of writes) expect(write).toMatchObject({ status: 'rejected', reason: expect.any(TurnLostError) });
    expect(await world.form(id)).toMatchObject({ status: 'Draft' });
    expect(await runs()).toBe(before);
    await giveBack(present);
  });

  it('that a run loses between two stages ends the run there: it writes no more, and it has not failed', async () => {
    const [warned, locked] = [await world.add({ age: 13 * day }), await world.add({ age: 16 * day })];
    const store = createExpiryStore();
    const before = await runs();
    let thief: Turn | undefined;
    const result = await world.run({
      store: {
        ...store,
        async count(db, stage, ...more) {
          if (stage === 'lock') {
            world.advance(lease);
            thief = await take();
          }
          return store.count(db, stage, ...more);
        },
      },
    });
    expect(result).toMatchObject({ outcome: 'lost', counts: { warned: 1, locked: 0 }, failures: [] });
    expect(await world.form(warned)).toMatchObject({ warned: expect.any(Date) });
    expect(await world.form(locked)).toMatchObject({ status: 'Draft' });
    expect(await runs()).toBe(before);
    if (thief) await giveBack(thief);
  });
});
