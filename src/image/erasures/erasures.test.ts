// Tests the command `erasures` on a real database. The tests delete forms with the form service's own SQL statements.
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import pino from 'pino';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { refuseOutboxRows } from '../../../test/support/poison.ts';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { formMigrations } from '../../forms/expiry/migrations.ts';
import { createFormStore } from '../../forms/forms/store.ts';
import { UsageError } from '../../service/operations/command-line.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { parseErasuresArguments } from './arguments.ts';
import { runErasures } from './erasures.ts';

const tenantId = 'urn:example:tenant';
const ids = ['0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11', '0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b12'] as const;

let pool: pg.Pool;
beforeEach(async () => {
  pool = await openDatabase();
});

async function openDatabase(): Promise<pg.Pool> {
  const opened = await open(formMigrations.directory);
  for (const id of ids)
    await opened.query(
      `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
         one_per_applicant, applicant, last_accessed, data)
       VALUES ($1, $2, 'permit', 'Draft', $3, '{"id": "a", "name": "Ana"}', 'i', true, false,
         '{"channels": [{"channel": "email", "address": "ana@example.org"}]}', $3, '{"secret": "Main Street"}')`,
      [id, tenantId, new Date()],
    );
  return opened;
}

/** Opens a database with these migrations. Without a directory, the database is empty. */
async function open(directory?: string): Promise<pg.Pool> {
  const database = await createTestDatabase(directory);
  onTestFinished(() => database.drop());
  return database.pool;
}

async function run(on: pg.Pool, args: string[], input: string[] = [], log = pino({ level: 'silent' })) {
  const lines: string[] = [];
  const command = parseErasuresArguments(args);
  if (command.action === 'help') throw new Error('no command');
  const source = (async function* () {
    yield* input;
  })();
  const code = await runErasures(command, {
    ...{ pool: on, url: on.options.connectionString ?? '', log },
    ...{ print: (line) => lines.push(line), lines: source },
  });
  return { code, lines };
}

const remove = (formId: string) =>
  createFormStore(unsharedPool(pool)).remove({
    ...{ formId, tenantId, now: new Date(), statuses: ['Draft'], actor: { id: 'admin', name: 'Ada' } },
  });
const count = async (on: pg.Pool, from: string) =>
  (await on.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${from}`)).rows[0]?.n;

describe('export', () => {
  it('lists deletions since a time, with ids and times only', async () => {
    const before = new Date();
    expect((await run(pool, ['export'])).lines).toEqual([]);
    await remove(ids[0]);
    const { lines } = await run(pool, ['export', '--since', before.toISOString()]);
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        ...{ formId: ids[0], tenantId, definitionId: 'permit', anonymousApplicant: true, notified: true },
        ...{ deleted: expect.stringMatching(/Z$/), sequence: '1' },
      },
    ]);
    expect((await run(pool, ['export', '--since', new Date(Date.now() + 60_000).toISOString()])).lines).toEqual([]);
  });
});

describe('apply', () => {
  it('deletes the forms again that a restored database has, and gives the event its number', async () => {
    // The restored database still has the deleted form, and has already given a sequence number to another event.
    const restored = await openDatabase();
    await restored.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before) VALUES ($1, $2, 'form-created', now(), now())`,
      [ids[1], tenantId],
    );
    await pool.query("SELECT setval('outbox_sequence_seq', 41)");
    await remove(ids[0]);
    const { lines } = await run(pool, ['export']);
    const { log, lines: logged } = captureLog('warn');
    const applied = await run(restored, ['apply'], [...lines, ''], log);
    expect(applied).toEqual({ code: 0, lines: ['1 deletions in the list; 1 forms deleted again.'] });
    const audit = { action: 'form.delete', actor: { kind: 'command', id: 'erasures' }, tenant: tenantId };
    const object = { type: 'form', id: ids[0] };
    expect(logged()).toMatchObject([{ audit: { ...audit, object, outcome: 'succeeded' } }]);
    expect([await count(restored, 'forms'), await count(restored, 'tombstones')]).toEqual([1, 1]);
    const { rows } = await restored.query("SELECT form_id, sequence FROM outbox WHERE kind = 'form-deleted'");
    expect(rows).toEqual([{ form_id: ids[0], sequence: '42' }]);
  });

  it.each(['first', 'last'])('joins several exports: the number may be in the one that comes %s', async (place) => {
    await pool.query("SELECT setval('outbox_sequence_seq', 41)");
    await remove(ids[0]);
    const [numbered = ''] = (await run(pool, ['export'])).lines;
    // Deletes the event's row, as the form service does after a week.
    await pool.query('DELETE FROM outbox');
    const [without = ''] = (await run(pool, ['export'])).lines;
    expect(JSON.parse(without)).toMatchObject({ formId: ids[0], sequence: null });
    const restored = await openDatabase();
    // The list has 601 lines. One transaction applies at most 500 deletions.
    const repeated = Array.from({ length: 600 }, () => without);
    const applied = await run(
      restored,
      ['apply'],
      place === 'first' ? [numbered, ...repeated] : [...repeated, numbered],
    );
    expect(applied.lines).toEqual(['1 deletions in the list; 1 forms deleted again.']);
    const { rows } = await restored.query("SELECT sequence FROM outbox WHERE kind = 'form-deleted'");
    expect(rows).toEqual([{ sequence: '42' }]);
  });

  it('lets later events have numbers that were never used, and can be repeated', async () => {
    await remove(ids[0]);
    const { lines } = await run(pool, ['export']);
    const restored = await openDatabase();
    await run(restored, ['apply'], lines);
    expect(await run(restored, ['apply'], lines)).toEqual({
      code: 0,
      lines: ['1 deletions in the list; 0 forms deleted again.'],
    });
    expect(await count(restored, 'outbox')).toBe(1);
    const { rows } = await restored.query<{ next: string }>("SELECT nextval('outbox_sequence_seq') AS next");
    expect(Number(rows[0]?.next)).toBeGreaterThan(2_000_000_000);
  });

  it('a number that another row has got since the restore is replaced', async () => {
    await remove(ids[0]);
    const { lines } = await run(pool, ['export']);
    const restored = await openDatabase();
    await restored.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before) VALUES ($1, $2, 'form-created', now(), now())`,
      [ids[1], tenantId],
    );
    expect((await run(restored, ['apply'], lines)).code).toBe(0);
    const { rows } = await restored.query<{ n: string }>(
      "SELECT sequence AS n FROM outbox WHERE kind = 'form-deleted'",
    );
    expect(Number(rows[0]?.n)).toBeGreaterThan(1_000_000_000);
  });

  it('an invalid line changes nothing', async () => {
    await remove(ids[0]);
    const { lines } = await run(pool, ['export']);
    const restored = await openDatabase();
    const cut = (lines[0] ?? '').slice(0, 40);
    expect(await run(restored, ['apply'], [lines[0] ?? '', cut])).toEqual({
      code: 1,
      lines: ['Line 2 is not one of "erasures export". Nothing was changed.'],
    });
    expect(await count(restored, 'forms')).toBe(2);
  });

  it('a form that Postgres cannot delete is named, and stops no other deletion', async () => {
    for (const id of ids) await remove(id);
    const { lines } = await run(pool, ['export']);
    const restored = await openDatabase();
    await refuseOutboxRows(restored, [ids[0]]);
    expect(await run(restored, ['apply'], lines)).toEqual({
      code: 1,
      lines: [
        `Postgres rejected the deletion of form ${ids[0]}: SQLSTATE 22P05.`,
        '2 deletions in the list; 1 forms deleted again.',
      ],
    });
    expect((await restored.query('SELECT id FROM forms')).rows).toEqual([{ id: ids[0] }]);
    await restored.query('TRUNCATE refused_forms');
    expect((await run(restored, ['apply'], lines)).code).toBe(0);
    expect(await count(restored, 'forms')).toBe(0);
  });

  it('a form of another tenant stays', async () => {
    await remove(ids[0]);
    const [line = ''] = (await run(pool, ['export'])).lines;
    const restored = await openDatabase();
    await run(restored, ['apply'], [line.replace(tenantId, 'urn:example:other')]);
    expect(await count(restored, 'forms')).toBe(2);
  });
});

describe('a backup of an older version', () => {
  const stores = new URL('../../../test/fixtures/stores/0.2.0/', import.meta.url);
  /** Restores a database of version 0.2.0 into an empty one. */
  async function restore(name: string): Promise<pg.Pool> {
    const restored = await open();
    const client = await restored.connect();
    await client.query(await readFile(new URL(`${name}.sql`, stores), 'utf8'));
    // The dump has emptied the search path of this session, so it must not be used again.
    client.release(true);
    return restored;
  }
  /** The entry of the form `draft` of the dump, as this version exports it. */
  async function draftErasure(): Promise<string> {
    const { forms } = JSON.parse(await readFile(new URL('facts.json', stores), 'utf8'));
    return JSON.stringify({
      ...{ formId: forms.draft, definitionId: 'permit', anonymousApplicant: true, notified: true, sequence: '4000' },
      ...{ tenantId: 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6' },
      deleted: '2026-11-24T10:00:00.000Z',
    });
  }

  it('of the form service forgets the form that was deleted after the upgrade', async () => {
    const restored = await restore('forms');
    const before = (await count(restored, 'forms')) ?? 0;
    const applied = await run(restored, ['apply'], [await draftErasure()]);
    expect(applied).toEqual({ code: 0, lines: ['1 deletions in the list; 1 forms deleted again.'] });
    expect(await count(restored, 'forms')).toBe(before - 1);
    expect(await count(restored, 'schema_migrations')).toBe(await count(pool, 'schema_migrations'));
  });

  it('of the platform server is migrated, and forgets the address of the applicant', async () => {
    const restored = await restore('platform');
    const migrated = await count(restored, 'schema_migrations');
    const { log, lines } = captureLog('warn');
    const applied = await run(restored, ['apply-platform'], [await draftErasure()], log);
    const tenant = JSON.parse(await draftErasure()).tenantId;
    const object = { type: 'subscriber', id: expect.stringMatching(/./) };
    expect(lines()).toMatchObject([{ audit: { action: 'subscriber.delete', tenant, object } }]);
    expect(applied).toEqual({ code: 0, lines: ['1 deletions in the list; 1 applicants deleted again.'] });
    expect(await count(restored, "subscriber_channels WHERE address = 'draft@example.org'")).toBe(0);
    expect(await count(restored, 'schema_migrations')).toBeGreaterThan(migrated ?? 0);
  });

  it.each(['apply', 'apply-platform'])('%s leaves an empty database to pg_restore', async (action) => {
    const restored = await open();
    await expect(run(restored, [action])).rejects.toThrow(/it has no tables of the/);
    expect(await count(restored, "pg_tables WHERE schemaname = 'public'")).toBe(0);
  });
});

describe('arguments', () => {
  it.each([
    [['export', '--since', 'yesterday']],
    [['apply', '--since', '2026-01-01']],
    [['apply-platform', '--since', '2026-01-01']],
    [['delete']],
    [['export', 'x']],
  ])('%j are invalid', (args) => {
    expect(() => parseErasuresArguments(args)).toThrow(UsageError);
  });
});
