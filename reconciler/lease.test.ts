// Tests that only one run is active at a time: which run gets the lease, how the lease ends, and that a run without the
// lease writes nothing.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeRun } from '../src/forms/expiry/run-store.ts';
import { expiryStore } from '../src/forms/expiry/store.ts';
import { day, type ExpiryWorld, startExpiryWorld } from '../test/support/expiry.ts';
import { WrongClockError } from './clock-check.ts';
import { acquireLease, type Lease, LeaseLostError } from './lease.ts';
import { releaseForRetry } from './quarantine.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

const duration = 60_000;

const acquire = () => acquireLease({ ...world.runOptions(), duration });

async function take(): Promise<Lease> {
  const lease = await acquire();
  if (!lease) throw new Error('the lease is not free');
  // Stops the renewal of the lease, as if the process had died.
  lease.stopRenewing();
  return lease;
}

const release = (lease: Lease) => lease.release(async () => undefined);
const runs = async () => (await world.pool.query('SELECT FROM reconciler_runs')).rowCount;

describe('the lease', () => {
  it('is held by one run: of three concurrent runs, one works and two are skipped', async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => world.add({ age: 16 * day })));
    const before = (await runs()) ?? 0;
    const store = expiryStore;
    let skipped = 0;
    const one = async () => {
      const result = await world.run({
        batchSize: 5,
        store: {
          ...store,
          // Only the run with the lease reads the definitions. It waits until the other two runs have been skipped.
          async definitions(db) {
            await expect.poll(() => skipped).toBe(2);
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

  it('of another run ends a run immediately, without changes and without a record', async () => {
    const lease = await take();
    const id = await world.add({ age: 16 * day });
    const before = await runs();
    expect(await world.run()).toMatchObject({ outcome: 'skipped', counts: {}, failures: [] });
    expect(await world.form(id)).toMatchObject({ status: 'Draft' });
    expect(await runs()).toBe(before);
    await release(lease);
    expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 1 } });
  });

  it('of a run that died is free after it has expired, not before', async () => {
    const dead = await take();
    world.advance(duration - 1);
    expect(await world.run()).toMatchObject({ outcome: 'skipped' });
    world.advance(1);
    expect(await world.run()).toMatchObject({ outcome: 'succeeded' });
    await expect(release(dead)).rejects.toThrow(LeaseLostError);
  });

  it('of a run that died while its clock was days ahead is free', async () => {
    world.advance(30 * day);
    const dead = await take();
    world.advance(-30 * day);
    expect(await world.run()).toMatchObject({ outcome: 'succeeded' });
    await expect(release(dead)).rejects.toThrow(LeaseLostError);
  });

  it('is neither acquired nor renewed while the clock differs from that of Postgres', async () => {
    const { pool } = world;
    let ahead = 0;
    const clock = () => new Date(Date.now() + ahead);
    const changes = { clock, clockTolerance: undefined };
    const before = await runs();
    for (const days of [30, -30]) {
      ahead = days * day;
      const id = await world.add({ age: 100 * day });
      for (const dryRun of [false, true])
        expect(
          await world.run({ ...changes, arguments: { only: undefined, dryRun, allowPrune: false } }),
        ).toMatchObject({
          outcome: 'failed',
          counts: {},
        });
      expect(await world.form(id)).toMatchObject({ status: 'Draft' });
    }
    const message = /^The clock of this node is (?:2591999|2592\d{3}) s behind the clock of Postgres\./;
    expect(world.log.lines().at(-1)).toMatchObject({
      level: 'error',
      err: { message: expect.stringMatching(message) },
    });
    ahead = 0;
    const lease = await acquireLease({ ...world.runOptions(changes), duration });
    lease?.stopRenewing();
    ahead = day;
    await expect(lease?.transact(async () => undefined)).rejects.toThrow(WrongClockError);
    await expect(lease?.renew()).rejects.toThrow(WrongClockError);
    await expect(lease?.release(async () => undefined)).rejects.toThrow(WrongClockError);
    ahead = 59_000;
    await lease?.release(async () => undefined);
    expect(await runs()).toBe(before);
    expect((await pool.query('SELECT FROM reconciler_turn WHERE held_until IS NULL')).rowCount).toBe(1);
  });

  it('is renewed by every transaction', async () => {
    const lease = await take();
    world.advance(duration - 1);
    await lease.transact(async () => undefined);
    world.advance(duration - 1);
    await lease.renew();
    world.advance(duration - 1);
    expect(await acquire()).toBeUndefined();
    await release(lease);
  });

  it('that was released is free, even if a renewal arrives late', async () => {
    const lease = await take();
    let late: Promise<unknown> | undefined;
    await lease.release(async () => {
      // The renewal waits for the row of the lease, because the release has locked it.
      late = lease.renew().catch((error: unknown) => error);
      const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      await expect.poll(async () => (await world.pool.query(waits)).rowCount).toBe(1);
    });
    expect(await late).toBeInstanceOf(LeaseLostError);
    await release(await take());
  });

  it.each([
    ['before it has any effect', false],
    ['after it has ended the lease', true],
  ])('is released once, even if the connection breaks at the commit, %s', async (_when, isCommitted) => {
    const lease = await take();
    const before = (await runs()) ?? 0;
    let [works, broken] = [0, false];
    await lease.release(async (client) => {
      works += 1;
      await client.query(
        "INSERT INTO reconciler_runs (generation, started, finished, outcome, counts) VALUES ($1, now(), now(), 'succeeded', '{}')",
        [lease.generation],
      );
      if (broken) return;
      broken = true;
      const query = client.query.bind(client);
      Object.assign(client, {
        async query(...args: Parameters<typeof query>) {
          if (String(args[0]) !== 'COMMIT') return query(...args);
          Object.assign(client, { query });
          await query(isCommitted ? 'COMMIT' : 'ROLLBACK');
          throw new Error('Connection terminated unexpectedly');
        },
      });
    });
    expect([works, await runs()]).toEqual([isCommitted ? 1 : 2, before + 1]);
    await expect(release(lease)).rejects.toThrow(LeaseLostError);
    await release(await take());
  });

  it('cannot be taken from a run during a transaction, even after it has expired', async () => {
    const lease = await take();
    await lease.transact(async () => {
      world.advance(2 * duration);
      expect(await acquire()).toBeUndefined();
    });
    await release(lease);
  });

  it('that was lost prevents every write: batches, records and the release', async () => {
    const lost = await take();
    world.advance(duration);
    const id = await world.add({ age: 16 * day });
    const present = await take();
    expect(BigInt(present.generation)).toBe(BigInt(lost.generation) + 1n);
    const before = await runs();
    const policies = [
      { tenantId: '', definitionId: 'permit', retention: { warnBefore: 0, lockAfter: 0, deleteAfter: 0 } },
    ];
    const batch = { position: { policies }, now: world.now(), limit: 10, dryRun: false };
    const record = {
      ...{ generation: lost.generation, started: world.now(), finished: world.now(), outcome: 'succeeded' as const },
      ...{
        expirySucceeded: true,
        clientsSucceeded: true,
        counts: {},
        conditions: null,
        oldestOverdue: null,
        overdueDeletions: null,
        formsByStatus: null,
        retention: null,
      },
    };
    const writes = await Promise.allSettled([
      lost.transact((client) => expiryStore.batch(client, 'lock', batch)),
      lost.release((client) => writeRun(client, record)),
      lost.renew(),
      releaseForRetry({ clock: world.now, writer: { dryRun: false, transact: lost.transact } }),
    ]);
    for (const write of writes) expect(write).toMatchObject({ status: 'rejected', reason: expect.any(LeaseLostError) });
    expect(await world.form(id)).toMatchObject({ status: 'Draft' });
    expect(await runs()).toBe(before);
    await release(present);
  });

  it('that is lost between two stages ends the run without further writes, and without failure', async () => {
    const [warned, locked] = [await world.add({ age: 13 * day }), await world.add({ age: 16 * day })];
    const store = expiryStore;
    const before = await runs();
    let thief: Lease | undefined;
    const result = await world.run({
      store: {
        ...store,
        async count(db, stage, ...more) {
          if (stage === 'lock') {
            world.advance(duration);
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
    if (thief) await release(thief);
  });
});
