// Tests the command `quarantine` on the database of each service.
import { join } from 'node:path';
import type pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { createFormsQuarantine } from '../../forms/quarantine/store.ts';
import { systemClock } from '../../service/clock.ts';
import { UsageError } from '../../service/operations/command-line.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { putInQuarantine } from '../../service/quarantine/quarantine-store.ts';
import { migrateDatabase } from '../migrate/migrate.ts';
import { parseQuarantineArguments } from './arguments.ts';
import { runQuarantine } from './quarantine.ts';

async function openDatabase(service: string): Promise<pg.Pool> {
  const database = await createTestDatabase(join(import.meta.dirname, '../..', service, 'migrations'));
  await migrateDatabase({ processName: service, url: database.url, log: captureLog().log });
  onTestFinished(() => database.drop());
  return database.pool;
}

async function run(pool: pg.Pool, args: string[], { log } = captureLog()) {
  const lines: string[] = [];
  const command = parseQuarantineArguments(args);
  if (command.action === 'help') throw new Error('no command');
  const code = await runQuarantine(command, { pool, log, print: (line) => lines.push(line) });
  return { code, lines };
}

const formId = '0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11';
const item = (kind: string, id: string) => ({
  ...{ kind, item: id, tenantId: 't', about: { formId } },
  ...({ reason: 'service-refused', detail: 'events 422' } as const),
});

describe.each([
  ['forms', 'form-locked', 'lock'],
  ['token-handler', 'client-event', 'client-deletion'],
  ['platform-server', 'delivery', 'event'],
])('the quarantine of %s', (service, kind, otherKind) => {
  it('is listed in pages, and released by item or completely', async () => {
    const pool = await openDatabase(service);
    expect(await run(pool, ['list'])).toEqual({ code: 0, lines: ['The quarantine is empty.'] });
    const many = Array.from({ length: 149 }, (_, at) => item(kind, String(at + 1)));
    await putInQuarantine(pool, [...many, item(otherKind, '7')], new Date('2026-11-22T10:00:00Z'));
    const { lines } = await run(pool, ['list']);
    expect(lines).toHaveLength(151);
    expect(lines[1]).toMatch(
      new RegExp(`^[0-9a-f-]{36}  .*service-refused +events 422 +1 +2026-11-22T10:00:00Z +formId=${formId}$`),
    );
    const json = (await run(pool, ['list', '--json', '--kind', otherKind])).lines.map((line) => JSON.parse(line));
    expect(json).toMatchObject([{ kind: otherKind, item: '7', released: false }]);
    const [{ id }] = json as [{ id: string }];
    const log = captureLog('error');
    expect(await run(pool, ['release', id], log)).toEqual({ code: 0, lines: [`released ${otherKind} ${id}`] });
    const audit = { action: 'quarantine.release', actor: { kind: 'command', id: 'quarantine' }, tenant: 't' };
    expect(log.lines()).toMatchObject([{ audit: { ...audit, object: { type: 'quarantine-item', id } } }]);
    expect(await run(pool, ['release', id])).toMatchObject({ code: 1 });
    expect((await run(pool, ['release', '--all'])).lines).toHaveLength(149);
    expect((await run(pool, ['list'])).lines[1]).toMatch(/ released$/);
  });
});

it('a very large quarantine is released in many transactions of a thousand items', async () => {
  const pool = await openDatabase('forms');
  const many = Array.from({ length: 2_001 }, (_, at) => item('core-client', String(at)));
  await putInQuarantine(pool, many, new Date('2026-11-22T10:00:00Z'));
  const store = createFormsQuarantine({ pool: unsharedPool(pool), clock: systemClock });
  const first = await store.release('all');
  const second = await store.release('all', first.at(-1)?.id);
  expect([first.length, second.length]).toEqual([1_000, 1_000]);
  await pool.query('UPDATE quarantine SET released = false');
  const { lines } = await run(pool, ['release', '--all']);
  expect([lines.length, new Set(lines).size]).toEqual([2_001, 2_001]);
  expect((await pool.query('SELECT FROM quarantine WHERE NOT released')).rowCount).toBe(0);
});

it('the quarantine of a database without migrations is an error that names the reason', async () => {
  const pool = await openDatabase('forms');
  await pool.query('DROP TABLE quarantine');
  await expect(run(pool, ['list'])).rejects.toThrow('run migrations first');
});

it.each([
  [['lists']],
  [['release']],
  [['release', '1']],
  [['list', formId]],
  [['release', formId, '--all']],
  [['list', '--al']],
])('%j are invalid arguments', (args) => {
  expect(() => parseQuarantineArguments(args)).toThrow(UsageError);
});
