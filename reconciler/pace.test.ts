// Tests how a run adapts its pace to requests, with a clock that the tests advance. Also tests, on a real Postgres, how
// a run detects requests.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres.ts';
import { createPace, watchRequests } from './pace.ts';

describe('the pace of a run', () => {
  /**
   * `requests` returns the result of each check for requests, or the error with which the check fails. The clock
   * advances by 100 ms with each batch.
   */
  function start(requests: () => boolean | Error) {
    let time = 0;
    const controller = new AbortController();
    // The signal is already aborted, so pauses end immediately.
    controller.abort();
    const pace = createPace({
      batchSize: 50,
      signal: controller.signal,
      now: () => time,
      hasRequests() {
        const found = requests();
        return found instanceof Error ? Promise.reject(found) : Promise.resolve(found);
      },
    });
    return {
      pace,
      async batches(count: number, took = 10) {
        for (let batch = 0; batch < count; batch += 1) {
          time += 100;
          await pace.pause({ took, changed: 50 });
        }
        return pace.size();
      },
    };
  }

  it('keeps batches small at first, and lets them grow if there are no requests', async () => {
    const { batches } = start(() => false);
    expect(await batches(19)).toBe(50);
    expect(await batches(1)).toBe(100);
    expect(await batches(10)).toBe(1_000);
  });

  it('makes batches small again as soon as requests come, and stays so for two seconds', async () => {
    let busy = false;
    const { batches } = start(() => busy);
    expect(await batches(30)).toBe(1_000);
    busy = true;
    expect(await batches(3)).toBe(50);
    busy = false;
    expect(await batches(20)).toBe(50);
    expect(await batches(10)).toBe(1_000);
  });

  it('ignores single statements, such as those of probes', async () => {
    let check = 0;
    const { batches } = start(() => {
      check += 1;
      return check % 4 === 0;
    });
    expect(await batches(40)).toBe(1_000);
  });

  it('halves batches that take long, to their configured size at least', async () => {
    const { batches } = start(() => false);
    expect(await batches(30)).toBe(1_000);
    expect(await batches(1, 300)).toBe(500);
    expect(await batches(10, 300)).toBe(50);
    expect(await batches(2, 150)).toBe(50);
  });

  it('assumes requests if it cannot find out', async () => {
    const { batches } = start(() => new Error('permission denied'));
    expect(await batches(40)).toBe(50);
  });

  it('waits while requests are served, so that it changes a thousand forms per second', async () => {
    const pace = createPace({
      batchSize: 50,
      hasRequests: () => Promise.resolve(true),
      signal: new AbortController().signal,
    });
    const started = performance.now();
    for (let batch = 0; batch < 4; batch += 1) await pace.pause({ took: 1, changed: 50 });
    expect(performance.now() - started).toBeGreaterThan(4 * 45);
  });
});

describe('requests', () => {
  let database: TestDatabase;
  const pools: pg.Pool[] = [];
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await database.drop();
  });
  function open(name?: string) {
    const pool = new pg.Pool({ connectionString: database.url, ...(name && { application_name: name }) });
    pools.push(pool);
    return pool;
  }

  it('are noticed by their statements, unlike those of the dispatcher and of the reconciler', async () => {
    const [own, outbox, requests] = [open('formgate reconciler'), open('formgate outbox'), open('formgate requests')];
    const hasRequests = watchRequests(own);
    await hasRequests();
    expect(await hasRequests()).toBe(false);
    await outbox.query('SELECT 1');
    await own.query('SELECT 1');
    expect(await hasRequests()).toBe(false);
    await requests.query('SELECT 1');
    expect(await hasRequests()).toBe(true);
    expect(await hasRequests()).toBe(false);
    await open().query('SELECT 1');
    expect(await hasRequests()).toBe(true);
  });
});
