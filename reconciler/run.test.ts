// Tests a whole run: its record, its failures, an early stop, and dry runs.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countForms } from '../src/forms/expiry/count-forms.ts';
import { readRunHistory } from '../src/forms/expiry/run-store.ts';
import { expiryStore } from '../src/forms/expiry/store.ts';
import { createMetrics } from '../src/service/operations/metrics.ts';
import { createPool } from '../src/service/postgres/postgres.ts';
import { captureLog } from '../test/support/captured-log.ts';
import { dumpDatabase } from '../test/support/database-dump.ts';
import { day, type ExpiryWorld, startExpiryWorld } from '../test/support/expiry.ts';
import { startTransactionPool } from '../test/support/transaction-pool.ts';
import type { ClientSync, SyncOptions } from './core-clients/sync.ts';

import { exitCodeOf } from './summary.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

const allOf = (only?: 'expire' | 'clients', dryRun = false) => ({ only, dryRun, allowPrune: false });

/** Returns a fake sync that records its options and returns `outcome`. */
function syncOf(outcome: Partial<Awaited<ReturnType<ClientSync['sync']>>> = {}) {
  const asked: Pick<SyncOptions, 'dryRun' | 'allowPrune'>[] = [];
  const clients: ClientSync = {
    async sync({ renewLease, dryRun, allowPrune }) {
      asked.push({ dryRun, allowPrune });
      await renewLease();
      return { counts: {}, conditions: {}, failures: [], ...outcome };
    },
  };
  return { clients, asked };
}

const lastRecord = async () => {
  const { rows } = await world.pool.query('SELECT * FROM reconciler_runs ORDER BY generation DESC LIMIT 1');
  return rows[0];
};

describe('a run', () => {
  it('records its times, counts, and the number of resources by condition', async () => {
    await Promise.all([world.add({ age: 16 * day }), world.add({ age: 13 * day }), world.add()]);
    const { clients } = syncOf({ counts: { written: 2 }, conditions: { 'Ready=True': 3, 'Ready=False': 1 } });
    const result = await world.run({ clients });
    expect(result).toMatchObject({ outcome: 'succeeded', conditions: { 'Ready=True': 3, 'Ready=False': 1 } });
    expect(await lastRecord()).toMatchObject({
      started: world.now(),
      finished: world.now(),
      outcome: 'succeeded',
      expiry_succeeded: true,
      clients_succeeded: true,
      counts: { warned: 1, locked: 1, deleted: 0, 'clients.written': 2 },
      conditions: { 'Ready=True': 3, 'Ready=False': 1 },
      oldest_overdue: null,
    });
  });

  it('records no success of the core clients if it read no resources', async () => {
    await world.run({ clients: syncOf({ skipped: 'CORE_CLIENTS is off' }).clients });
    expect(await lastRecord()).toMatchObject({ outcome: 'succeeded', clients_succeeded: null });
    await world.run({ clients: syncOf({ skipped: 'the resources cannot be read', failures: ['no list'] }).clients });
    expect(await lastRecord()).toMatchObject({ outcome: 'failed', clients_succeeded: false });
  });

  it('records the number of forms by status, and goes on without it if the count takes too long', async () => {
    await world.pool.query('TRUNCATE forms CASCADE');
    await Promise.all([world.add({ age: 16 * day }), world.add(), world.add()]);
    await world.run();
    expect(await lastRecord()).toMatchObject({
      forms_by_status: { Draft: 2, Locked: 1, Submitted: 0, Archived: 0 },
    });
    const blocker = await world.pool.connect();
    await blocker.query('BEGIN; LOCK TABLE forms IN ACCESS EXCLUSIVE MODE');
    const { log, lines } = captureLog();
    expect(await countForms({ pool: world.pool, log, limit: 200 })).toBeUndefined();
    await blocker.query('ROLLBACK');
    blocker.release();
    expect(lines()).toMatchObject([{ level: 'warn', msg: 'forms not counted' }]);
  });

  it('that turns a part off ends the record of its last success after 20 runs', async () => {
    await world.run({ clients: syncOf({ conditions: {} }).clients });
    const off = { clients: syncOf({ skipped: 'CORE_CLIENTS is off' }).clients };
    await world.run(off);
    expect(await readRunHistory(world.pool)).toMatchObject({ clientsSuccess: world.now(), expirySuccess: world.now() });
    for (let runs = 1; runs < 20; runs += 1) await world.run(off);
    expect(await readRunHistory(world.pool)).toMatchObject({ clientsSuccess: null, expirySuccess: world.now() });
  });

  it('records how long the most overdue draft is overdue, including those of skipped definitions', async () => {
    world.breakDefinition('unread', 'invalid');
    const id = await world.add({ definitionId: 'unread', age: 20 * day });
    await world.add({ definitionId: 'unread', age: 18 * day });
    await world.run();
    expect(await lastRecord()).toMatchObject({ oldest_overdue: new Date(world.now().getTime() - 5 * day) });
    await world.pool.query("DELETE FROM forms WHERE definition_id = 'unread'");
    expect(await world.form(id)).toBeUndefined();
  });

  it('that failed early keeps the last known time of the most overdue draft', async () => {
    await world.add({ definitionId: 'unread', age: 20 * day });
    await world.run();
    const store = { ...expiryStore, definitions: () => Promise.reject(new Error('no database')) };
    await world.run({ store });
    expect(await readRunHistory(world.pool)).toMatchObject({
      last: { outcome: 'failed' },
      oldestOverdue: new Date(world.now().getTime() - 5 * day),
    });
    await world.pool.query("DELETE FROM forms WHERE definition_id = 'unread'");
  });

  it.each([
    ['expire', 0, true, null],
    ['clients', 1, null, true],
  ] as const)('with --only %s skips the other part, and records that', async (only, syncs, expiry, clients) => {
    const id = await world.add({ age: 16 * day });
    const { clients: sync, asked } = syncOf();
    await world.run({ arguments: allOf(only), clients: sync });
    expect(asked).toHaveLength(syncs);
    expect(await world.form(id)).toMatchObject({ status: only === 'expire' ? 'Locked' : 'Draft' });
    expect(await lastRecord()).toMatchObject({ expiry_succeeded: expiry, clients_succeeded: clients });
  });

  it('passes --allow-prune to the sync of core clients', async () => {
    const { clients, asked } = syncOf();
    await world.run({ arguments: { only: 'clients', dryRun: false, allowPrune: true }, clients });
    expect(asked).toEqual([{ dryRun: false, allowPrune: true }]);
  });
});

describe('behind a pooler that uses another connection for each transaction', () => {
  it('a run works the same, without state in the session', async () => {
    const pooler = await startTransactionPool(world.url, 2);
    const url = new URL(world.url);
    url.host = pooler.host;
    const pool = createPool({ url: url.href, size: 2, log: world.log.log, metrics: createMetrics() });
    await world.run();
    const ids = await Promise.all(Array.from({ length: 9 }, () => world.add({ age: 16 * day })));
    // Opens both connections to the server, so that the following statements alternate between them.
    const clients = [await pool.connect(), await pool.connect()];
    for (const client of clients) await client.query('BEGIN');
    for (const client of clients) await client.query('COMMIT');
    for (const client of clients) client.release();
    expect(await world.run({ pool, batchSize: 2 })).toMatchObject({ outcome: 'succeeded', counts: { locked: 9 } });
    for (const id of ids) expect(await world.form(id)).toMatchObject({ status: 'Locked' });
    expect(pooler.switches()).toBeGreaterThan(0);
    expect(pooler.prepared).toEqual([]);
    await pool.end();
    await pooler.close();
  });
});

describe('a dry run', () => {
  it('reports what would change, and changes neither rows nor the lease', async () => {
    await world.run();
    await Promise.all([
      world.add({ age: 16 * day }),
      world.add({ age: 16 * day, definitionId: 'other' }),
      world.add({ age: 13 * day }),
      world.add({ lockedFor: 16 * day, noticeAccepted: true }),
      world.add({ lockedFor: 16 * day, noticeAccepted: false }),
      world.add({ lockedFor: 31 * day, noticeAccepted: false }),
    ]);
    const before = await dumpDatabase(world.pool);
    const { clients, asked } = syncOf();
    const result = await world.run({ arguments: allOf(undefined, true), clients, batchSize: 1 });
    expect(result).toMatchObject({
      outcome: 'succeeded',
      dryRun: true,
      counts: { warned: 1, locked: 2, deleted: 2, deletedNotNotified: 1, waiting: 1 },
    });
    expect(asked).toEqual([{ dryRun: true, allowPrune: false }]);
    expect(await dumpDatabase(world.pool)).toEqual(before);
    const { counts } = await world.run();
    // The real run also purges one more row: a delivered outbox row that is no longer needed after the deletion of its
    // form.
    expect(counts).toMatchObject({ ...result.counts, purged: (result.counts.purged ?? 0) + 1 });
  });

  it('works while another run holds the lease', async () => {
    await world.pool.query('UPDATE reconciler_turn SET held_until = $1', [new Date(world.now().getTime() + day)]);
    expect(await world.run({ arguments: allOf(undefined, true) })).toMatchObject({ outcome: 'succeeded' });
    expect(await world.run()).toMatchObject({ outcome: 'skipped' });
    await world.pool.query('UPDATE reconciler_turn SET held_until = NULL');
  });
});

describe('a failure', () => {
  it('of the configuration service does not prevent the purge and the sync of core clients', async () => {
    await world.pool.query("INSERT INTO code_sends (address_hash, sent) VALUES ('a', '2020-01-01')");
    world.breakDefinition('away', 'unreadable');
    await world.add({ definitionId: 'away', age: 16 * day });
    const { clients, asked } = syncOf();
    const result = await world.run({ clients });
    expect(result.outcome).toBe('failed');
    expect((await world.pool.query('SELECT FROM code_sends')).rowCount).toBe(0);
    expect(result.failures).toEqual(['1 form definitions could not be read']);
    expect(asked).toHaveLength(1);
    expect(await lastRecord()).toMatchObject({ outcome: 'failed', expiry_succeeded: false, clients_succeeded: true });
    await world.pool.query("DELETE FROM forms WHERE definition_id = 'away'");
  });

  it('of the expiry does not prevent the sync of core clients, and fails the run', async () => {
    const { clients, asked } = syncOf();
    const store = { ...expiryStore, definitions: () => Promise.reject(new Error('no database')) };
    const result = await world.run({ store, clients });
    expect(result).toMatchObject({ outcome: 'failed', failures: ['the search for definitions failed'] });
    expect(asked).toHaveLength(1);
    expect(exitCodeOf(result)).toBe(1);
    // This run succeeds only if the previous run has released the lease.
    expect(await world.run()).toMatchObject({ outcome: 'succeeded' });
  });

  it('of the sync of core clients fails the run, after drafts were expired', async () => {
    const id = await world.add({ age: 16 * day });
    const { clients } = syncOf({ failures: ['the API server does not respond'] });
    const result = await world.run({ clients });
    expect(result).toMatchObject({ outcome: 'failed', failures: ['the API server does not respond'] });
    expect(await world.form(id)).toMatchObject({ status: 'Locked' });
    expect(await lastRecord()).toMatchObject({ expiry_succeeded: true, clients_succeeded: false });
  });

  it('that is temporary, such as a deadlock, is retried and does not fail the run', async () => {
    const id = await world.add({ age: 16 * day });
    const store = expiryStore;
    let failures = 0;
    const result = await world.run({
      store: {
        ...store,
        async batch(db, stage, options) {
          failures += 1;
          if (failures === 1) await db.query("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$");
          return store.batch(db, stage, options);
        },
      },
    });
    expect(result).toMatchObject({ outcome: 'succeeded', counts: { locked: 1 } });
    expect(await world.form(id)).toMatchObject({ status: 'Locked' });
  });
});

describe('a run that is asked to stop', () => {
  it('ends after its batch without failure, records that it was stopped, and releases the lease', async () => {
    await Promise.all(Array.from({ length: 12 }, () => world.add({ age: 16 * day })));
    const stop = new AbortController();
    const store = expiryStore;
    const { clients, asked } = syncOf();
    const result = await world.run({
      signal: stop.signal,
      batchSize: 5,
      clients,
      store: {
        ...store,
        async batch(db, stage, options) {
          const batch = await store.batch(db, stage, options);
          if (stage === 'lock') stop.abort();
          return batch;
        },
      },
    });
    expect(result).toMatchObject({ outcome: 'stopped', counts: { locked: 5 } });
    expect(exitCodeOf(result)).toBe(0);
    expect(asked).toEqual([]);
    expect(await lastRecord()).toMatchObject({ outcome: 'stopped', expiry_succeeded: false, clients_succeeded: null });
    expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 7 } });
  });
});
