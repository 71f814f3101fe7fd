// Tests the reconciler as a process: exit codes, output, signals, and outages of its dependencies.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tenant as anyTenant } from '../test/support/expiry.ts';
import { type FormWorld, startFormWorld } from '../test/support/form-world.ts';
import { createTestDatabase } from '../test/support/postgres.ts';
import { reconcilerEnv, spawnReconciler } from '../test/support/reconciler.ts';

let world: FormWorld;
let env: Record<string, string>;
beforeAll(async () => {
  world = await startFormWorld();
  env = reconcilerEnv(world.platform, world.databaseUrl);
});
afterAll(() => world.close());

const timeout = 120_000;

/** Adds drafts that nobody has opened for a month. Their definition is configured. */
async function addOverdue(count: number): Promise<void> {
  await world.pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
      anonymous_applicant, one_per_applicant, applicant, last_accessed)
    SELECT gen_random_uuid(), $1, 'permit', 'Draft', moment, '{"id":"intake","name":"Intake"}', 'core', true, false,
      '{"channels":[{"channel":"email","address":"unseen-canary@example.org"}]}', moment
    FROM generate_series(1, $2::int) n, LATERAL (SELECT $3::timestamptz - n * interval '1 second') AS m (moment)`,
    [world.platform.tenant.id ?? anyTenant, count, new Date(Date.now() - 30 * 86_400_000)],
  );
}

const statuses = async () => {
  const { rows } = await world.pool.query('SELECT status, count(*)::int AS count FROM forms GROUP BY status');
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
};
const summaryOf = (lines: Record<string, unknown>[]) => lines.find(({ outcome }) => outcome !== undefined);

describe('the process', () => {
  it('exits 0 after a run, with one summary in its log and no data of applicants', { timeout }, async () => {
    await addOverdue(25);
    const { code, lines, stdout, stderr } = await spawnReconciler({ ...env, BATCH_SIZE: '10' }).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines.filter(({ outcome }) => outcome !== undefined)).toHaveLength(1);
    expect(summaryOf(lines)).toMatchObject({ outcome: 'succeeded', counts: { locked: 25 } });
    expect(summaryOf(lines)?.msg).toMatch(/^Succeeded in .* s: 0 warned, 25 locked, 0 deleted/);
    expect(await statuses()).toEqual({ Locked: 25 });
    expect(stdout).not.toContain('unseen-canary');
  });

  it('exits 0 and reports that it skipped the run while another run holds the lease', { timeout }, async () => {
    await world.pool.query('UPDATE reconciler_turn SET held_until = $1', [new Date(Date.now() + 86_400_000)]);
    const { code, lines } = await spawnReconciler(env).ended;
    expect(code).toBe(0);
    expect(summaryOf(lines)).toMatchObject({ outcome: 'skipped' });
    await world.pool.query('UPDATE reconciler_turn SET held_until = NULL');
  });

  it('with --dry-run exits 0 and changes nothing', { timeout }, async () => {
    await addOverdue(3);
    const { code, lines } = await spawnReconciler(env, ['--dry-run']).ended;
    expect(code).toBe(0);
    expect(summaryOf(lines)).toMatchObject({ dryRun: true, counts: { locked: 3 } });
    expect(await statuses()).toMatchObject({ Draft: 3 });
  });

  it('with --dry-run exits 1 while migrations of its version are pending', { timeout }, async () => {
    const newest =
      'DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations) RETURNING *';
    const { rows } = await world.pool.query(newest);
    const { code, lines } = await spawnReconciler(env, ['--dry-run']).ended;
    const restore = 'INSERT INTO schema_migrations SELECT * FROM json_populate_recordset(null::schema_migrations, $1)';
    await world.pool.query(restore, [JSON.stringify(rows)]);
    expect(code).toBe(1);
    expect(lines.at(-1)?.reason).toMatch(/migrations of this version are pending, which a dry run does not apply$/);
  });

  it('exits 1 if the platform is unavailable, after doing what needs no definition', { timeout }, async () => {
    await world.pool.query("INSERT INTO code_sends (address_hash, sent) VALUES ('a', '2020-01-01')");
    const away = { DIRECTORY_URL: 'http://127.0.0.1:9/directory/v2', PLATFORM_TIMEOUT: 'PT2S' };
    const { code, lines } = await spawnReconciler({ ...env, ...away }, ['--only', 'expire']).ended;
    expect(code).toBe(1);
    expect(summaryOf(lines)).toMatchObject({ outcome: 'failed', failures: ['1 form definitions could not be read'] });
    expect(await statuses()).toMatchObject({ Draft: 3 });
    expect((await world.pool.query('SELECT FROM code_sends')).rowCount).toBe(0);
  });

  it('exits 1 with one line if the database is unavailable', { timeout }, async () => {
    const { code, lines } = await spawnReconciler({ ...env, DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' }).ended;
    expect(code).toBe(1);
    expect(lines.filter(({ level }) => level === 'fatal')).toHaveLength(1);
  });

  it.each([[[]], [['--dry-run']]])(
    'exits 1 if its database has no tables of the form service, and creates none: %j',
    {
      timeout,
    },
    async (args) => {
      const empty = await createTestDatabase();
      const { code, lines } = await spawnReconciler({ ...env, DATABASE_URL: empty.url }, args).ended;
      const client = new pg.Client({ connectionString: empty.url });
      await client.connect();
      const { rowCount } = await client.query("SELECT FROM pg_tables WHERE schemaname = 'public'");
      await client.end();
      await empty.drop();
      expect({ code, tables: rowCount }).toEqual({ code: 1, tables: 0 });
      expect(lines.at(-1)?.reason).toMatch(
        /it has no tables of the form service, which creates them; check DATABASE_URL$/,
      );
    },
  );

  it('exits 1 and names every problem of its environment, before it connects to anything', { timeout }, async () => {
    const { code, lines } = await spawnReconciler({ LOCK_AFTER: 'soon' }).ended;
    const [problems] = lines.filter(({ msg }) => msg === 'invalid configuration').map((line) => String(line.problems));
    expect(code).toBe(1);
    for (const name of ['DATABASE_URL', 'DIRECTORY_URL', 'CLIENT_SECRET', 'LOCK_AFTER'])
      expect(problems).toContain(name);
  });

  it('exits 1 if WARN_BEFORE is not shorter than LOCK_AFTER', { timeout }, async () => {
    const { code, lines } = await spawnReconciler({ ...env, WARN_BEFORE: 'P20D', LOCK_AFTER: 'P15D' }).ended;
    expect(code).toBe(1);
    expect(lines).toMatchObject([{ problems: ['WARN_BEFORE: must be shorter than LOCK_AFTER'] }]);
    expect(await statuses()).toMatchObject({ Draft: 3 });
  });

  it('exits 2 for invalid arguments, and 0 for --help', { timeout }, async () => {
    const wrong = await spawnReconciler(env, ['--force']).ended;
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--help') });
    expect(await spawnReconciler({}, ['--help']).ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('--dry-run'),
    });
  });

  it('ends after its batch on SIGTERM with exit code 0, and the next run continues', {
    timeout: 2 * timeout,
  }, async () => {
    await addOverdue(4_000);
    const running = spawnReconciler({ ...env, BATCH_SIZE: '10', LOG_LEVEL: 'info' });
    await expect.poll(async () => (await statuses()).Locked ?? 0, { timeout, interval: 20 }).toBeGreaterThan(25);
    running.kill('SIGTERM');
    const { code, signal, lines } = await running.ended;
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(summaryOf(lines)).toMatchObject({ outcome: 'stopped' });
    const left = (await statuses()).Draft ?? 0;
    expect(left).toBeGreaterThan(0);
    const rest = await spawnReconciler(env).ended;
    expect(summaryOf(rest.lines)).toMatchObject({ outcome: 'succeeded', counts: { locked: left } });
    expect((await statuses()).Draft).toBeUndefined();
  });

  it('leaves a lease that expires if it is killed', { timeout: 2 * timeout }, async () => {
    await addOverdue(4_000);
    const running = spawnReconciler({ ...env, BATCH_SIZE: '10', LEASE_DURATION: 'PT2S' });
    await expect.poll(async () => (await statuses()).Draft ?? 0, { timeout, interval: 20 }).toBeLessThan(3_990);
    running.kill('SIGKILL');
    expect((await running.ended).signal).toBe('SIGKILL');
    const deadline = Date.now() + timeout;
    for (;;) {
      const { code, lines } = await spawnReconciler({ ...env, LEASE_DURATION: 'PT2S' }).ended;
      expect(code).toBe(0);
      if (summaryOf(lines)?.outcome === 'succeeded') break;
      expect(Date.now()).toBeLessThan(deadline);
    }
    expect((await statuses()).Draft).toBeUndefined();
    const { rows } = await world.pool.query(
      `SELECT count(*)::int AS rows, count(DISTINCT form_id)::int AS forms FROM outbox WHERE kind = 'form-locked'`,
    );
    expect(rows[0].rows).toBe(rows[0].forms);
  });
});
