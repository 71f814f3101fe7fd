// Applies the migrations of the form service one by one while drafts are saved and listed, and measures how long these
// statements wait for locks. The database begins with the schema of version 0.2.0.
import { readdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import { quantile } from '../bench/latency.ts';
import { migrateTo, type ScaleDatabase } from './database.ts';

export interface MigrationResult {
  version: number;
  /** Seconds that the migration took. */
  seconds: number;
  /**
   * Figures of the saves and lists that ran during the migration (one list for nine saves): their number, latencies in
   * milliseconds, and the number of failures.
   */
  statements: { count: number; p99: number; slowest: number; failed: number };
  /** Longest time, in milliseconds, that a statement of a request waited for a lock. `pg_locks` is read every 20 ms. */
  longestLockWait: number;
}

const saveSql = `UPDATE forms SET data = $2, files = '{}', revision = revision + 1, last_accessed = now()
  WHERE id = $1 AND status = 'Draft' RETURNING revision`;
const listSql = 'SELECT id FROM forms WHERE tenant_id = $1 ORDER BY created DESC, id DESC LIMIT 20';
/** Returns the longest wait of a save or list for a lock. Leaves out the migration's own waits. */
const waitSql = `
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)) * 1000, 0)::float8 AS wait
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE NOT l.granted AND a.application_name = 'scale statements'`;

/** Statements per second, of all connections together. */
const rate = 50;
const connections = 8;

export async function measureMigrations(database: ScaleDatabase, tenant: string): Promise<MigrationResult[]> {
  const { rows } = await database.pool.query('SELECT max(version)::int AS version FROM schema_migrations');
  const files = (await readdir(formMigrations.directory)).filter((file) => file.endsWith('.sql'));
  const pending = files.map((file) => Number.parseInt(file, 10)).filter((version) => version > rows[0].version);
  const results: MigrationResult[] = [];
  if (pending.length === 0) return results;
  const load = await startStatements(database, tenant);
  await load.measure(() => delay(2_000));
  for (const version of pending.sort((a, b) => a - b)) {
    const started = performance.now();
    const measured = await load.measure(async () => {
      await migrateTo(version, database.forms);
      // Statements that waited for the migration's locks need time to end.
      await delay(1_000);
    });
    results.push({ version, seconds: (performance.now() - started - 1_000) / 1_000, ...measured });
  }
  await load.stop();
  return results;
}

async function startStatements({ forms, pool: observer }: ScaleDatabase, tenant: string) {
  const pool = new pg.Pool({ connectionString: forms, max: connections, application_name: 'scale statements' });
  const { rows } = await observer.query<{ id: string }>(
    "SELECT id FROM forms TABLESAMPLE SYSTEM (0.5) WHERE status = 'Draft' LIMIT 2000",
  );
  const data = JSON.stringify({ name: 'x'.repeat(400) });
  let times: number[] = [];
  let [failed, wait] = [0, 0];
  const controller = new AbortController();
  const one = async (index: number) => {
    const began = performance.now();
    const work =
      index % 10 === 0
        ? pool.query(listSql, [tenant])
        : pool.query(saveSql, [rows[(index * 31) % rows.length]?.id, data]);
    await work.catch(() => {
      failed += 1;
    });
    times.push(performance.now() - began);
  };
  const repeat = async (milliseconds: number, work: (index: number) => unknown) => {
    for (let index = 0; !controller.signal.aborted; index += 1) {
      await work(index);
      await delay(milliseconds, undefined, { signal: controller.signal }).catch(() => undefined);
    }
  };
  const sending = repeat(1_000 / rate, (index) => void one(index));
  const watching = repeat(20, async () => {
    wait = Math.max(wait, (await observer.query<{ wait: number }>(waitSql)).rows[0]?.wait ?? 0);
  });
  return {
    async measure(work: () => Promise<unknown>): Promise<Pick<MigrationResult, 'statements' | 'longestLockWait'>> {
      [times, failed, wait] = [[], 0, 0];
      await work();
      const statements = { count: times.length, p99: quantile(times, 0.99), slowest: Math.max(...times), failed };
      return { statements, longestLockWait: wait };
    },
    async stop() {
      controller.abort();
      await Promise.all([sending, watching]);
      await pool.end();
    },
  };
}
