// Tests the statements that change forms on a real Postgres without a dispatcher: which rows they write together, and
// which changes they refuse.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { formStatuses, type MoveOperation, type Operation, operationNames, operations } from './catalogue.ts';
import { type CreationStore, createCreationStore, type NewForm } from './creation-store.ts';
import { createClaim } from './idempotency.ts';
import { createFormStore, type FormStore } from './store.ts';

let database: TestDatabase;
let pool: pg.Pool;
let store: FormStore;
let creation: CreationStore;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  store = createFormStore(unsharedPool(pool));
  creation = createCreationStore(unsharedPool(pool));
});
afterAll(() => database.drop());

const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
const actor = { id: 'subject-1', name: 'Ada' };
const by = { role: 'admin', account: '3f9ac0d21e77' };
const now = new Date('2026-08-20T17:00:00Z');

function newForm(changes: Partial<NewForm> = {}): NewForm {
  return {
    id: randomUUID(),
    tenantId,
    definitionId: 'permit',
    status: 'Draft',
    created: now,
    createdBy: actor,
    issuer: 'https://access.example.org/auth/realms/demo',
    anonymousApplicant: true,
    forAnother: false,
    onePerApplicant: false,
    applicant: { addressAs: 'Ana', channels: [{ channel: 'email', address: 'ana@example.org' }] },
    noticeHashes: [],
    isBudgeted: false,
    addressHashes: [],
    ...changes,
  };
}

async function made(changes: Partial<NewForm> = {}): Promise<string> {
  const form = newForm(changes);
  expect(await creation.create(form, undefined)).toBe(true);
  return form.id;
}

const outbox = async (formId: string) =>
  (
    await pool.query('SELECT kind, facts, created, not_before FROM outbox WHERE form_id = $1 ORDER BY sequence', [
      formId,
    ])
  ).rows;

describe('create', () => {
  it('writes no subscribe row for an applicant without a channel', async () => {
    const id = await made({ anonymousApplicant: false, applicant: { addressAs: 'Ada', channels: [] } });
    expect((await outbox(id)).map(({ kind }) => kind)).toEqual(['form-created']);
  });

  it('writes rows that are due immediately and contain neither addresses nor form data', async () => {
    const id = await made();
    const rows = await outbox(id);
    expect(rows.map(({ not_before: due }) => due)).toEqual([now, now]);
    expect(JSON.stringify(rows)).not.toContain('ana@example.org');
  });

  it('writes no idempotency record if it creates no form', async () => {
    const creator = { anonymousApplicant: false, onePerApplicant: true, definitionId: 'once' };
    await made(creator);
    const scope = { tenantId, issuer: 'i', subject: 's', route: 'r', body: {}, now };
    const record = { ...createClaim('secret', 'key', scope), response: { id: 'f' } };
    expect(await creation.create(newForm(creator), record)).toBe(false);
    expect((await pool.query("SELECT FROM idempotency_keys WHERE issuer = 'i'")).rowCount).toBe(0);
  });
});

const isMove = (operation: Operation): operation is MoveOperation => 'move' in operations[operation];

describe('move', () => {
  it.each(operationNames.filter(isMove))(
    '%s changes only a form of the required status, and writes one event with the actor',
    async (operation) => {
      const { move, event } = operations[operation];
      const sets = 'sets' in move ? move.sets : undefined;
      for (const status of formStatuses) {
        const id = await made();
        await pool.query(
          "UPDATE forms SET status = $2, locked = CASE WHEN $2 = 'Locked' THEN created END WHERE id = $1",
          [id, status],
        );
        const later = new Date(now.getTime() + 1_000);
        const moved = await store.move({ tenantId, formId: id, actor, now: later, by, operation });
        const events = (await outbox(id)).slice(2);
        if (status !== move.from) {
          expect([moved, events]).toEqual([undefined, []]);
          continue;
        }
        expect(moved).toMatchObject({ status: move.to, revision: '2', locked: null });
        expect(moved?.lastAccessed).toEqual(sets === 'last_accessed' ? later : now);
        expect(events).toEqual([
          { kind: event, facts: { definitionId: 'permit', actor }, created: later, not_before: later },
        ]);
      }
    },
  );

  it('refuses another tenant’s form and another revision', async () => {
    const id = await made();
    const change = { tenantId, formId: id, actor, now, by, operation: 'submit' as const };
    expect(await store.move({ ...change, tenantId: 'another' })).toBeUndefined();
    expect(await store.move({ ...change, revision: '2' })).toBeUndefined();
    expect(await store.move({ ...change, revision: '1' })).toBeDefined();
  });
});

describe('the history', () => {
  const history = async (id: string) => (await store.history({ tenantId, formId: id })) ?? [];

  it('gets an entry in the statement of the change, and none if the change is refused or changes nothing', async () => {
    const id = await made();
    const change = { tenantId, formId: id, actor, now, by };
    await store.move({ ...change, operation: 'unlock' });
    await store.setHeld({ ...change, hold: undefined });
    expect(await history(id)).toEqual([]);
    await store.move({ ...change, operation: 'submit' });
    await store.setHeld({ ...change, hold: {} });
    await store.setHeld({ ...change, hold: undefined });
    await store.recordSent({ ...change, tenantId: 'another' });
    await store.recordSent(change);
    const entry = (event: string) => [event, '2026-08-20T17:00:00+00:00', 'admin', '3f9ac0d21e77'];
    expect(await history(id)).toEqual(['submitted', 'held', 'released', 'code-sent'].map(entry));
    expect(await store.history({ tenantId: 'another', formId: id })).toBeUndefined();
  });

  it('keeps the first 20 and the last 80 entries', async () => {
    const id = await made();
    const all = Array.from({ length: 103 }, (_, nth) => `account ${nth}`);
    for (const account of all) await store.recordSent({ tenantId, formId: id, now, by: { role: 'intake', account } });
    expect((await history(id)).map(([, , , account]) => account)).toEqual([...all.slice(0, 20), ...all.slice(-80)]);
  });
});

describe('remove', () => {
  const all = formStatuses;

  it('writes the tombstone and form-deleted with actor, subscriber and each file once', async () => {
    const id = await made();
    const file = (nth: number) =>
      `urn:example:platform:file-service:v1:/files/0000000${nth}-0000-4000-8000-000000000000`;
    const files = { a: `${file(1)};${file(2)}`, b: file(1) };
    await pool.query("UPDATE forms SET files = $2, subscriber_id = 'abc' WHERE id = $1", [id, files]);
    expect(await store.remove({ tenantId, formId: id, actor, now, statuses: all })).toBe(true);
    expect((await outbox(id)).at(-1)).toMatchObject({
      kind: 'form-deleted',
      facts: { definitionId: 'permit', actor, subscriberId: 'abc', files: [file(1), file(2)] },
    });
    expect((await pool.query('SELECT FROM tombstones WHERE form_id = $1', [id])).rowCount).toBe(1);
  });

  it('writes neither subscriber nor files if the form has none', async () => {
    const id = await made();
    await store.remove({ tenantId, formId: id, actor, now, statuses: all });
    expect((await outbox(id)).at(-1)?.facts).toEqual({ definitionId: 'permit', wasDraft: true, actor, files: [] });
  });

  it('refuses a held form, another status and another tenant, and writes nothing', async () => {
    const id = await made();
    const change = { tenantId, formId: id, actor, now, statuses: all };
    expect(await store.remove({ ...change, tenantId: 'another' })).toBe(false);
    expect(await store.remove({ ...change, statuses: ['Locked'] })).toBe(false);
    await store.setHeld({ tenantId, formId: id, now, actor, by, hold: {} });
    expect(await store.remove(change)).toBe(false);
    expect((await outbox(id)).map(({ kind }) => kind)).toEqual(['subscribe', 'form-created']);
    expect((await pool.query('SELECT FROM tombstones WHERE form_id = $1', [id])).rowCount).toBe(0);
  });
});
