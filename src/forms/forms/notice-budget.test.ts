// Tests on a real Postgres which notices the budget of an address suppresses, and to whose notices it applies.
// address-budget.test.ts tests the same with real mail.
import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import type { Caller } from '../../service/auth/identity.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { type CreationStore, createCreationStore, type NewForm } from './creation-store.ts';
import { isBudgeted } from './notice-budget.ts';
import { createFormStore, type FormStore } from './store.ts';

let database: TestDatabase;
let pool: pg.Pool;
let store: FormStore;
let creation: CreationStore;
let suppressed = 0;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  const onSuppressed = () => {
    suppressed += 1;
  };
  store = createFormStore(unsharedPool(pool), { onSuppressed });
  creation = createCreationStore(unsharedPool(pool), { onSuppressed });
});
afterAll(() => database.drop());

const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
const actor = { id: 'alice', name: 'Alice' };
const start = Date.parse('2026-08-20T17:00:00Z');
const at = (minutes: number) => new Date(start + minutes * 60_000);
const channels = [{ channel: 'email' as const, address: 'stranger@example.org' }];

/** Creates a form of a signed-in person for an address, and returns its id. */
async function create(hash: Buffer, minutes: number, changes: Partial<NewForm> = {}): Promise<string> {
  const id = randomUUID();
  const owner = { tenantId, definitionId: 'permit', createdBy: actor, issuer: 'demo', applicant: { channels } };
  const kind = { anonymousApplicant: false, forAnother: false, onePerApplicant: false, status: 'Draft' as const };
  const notices = { noticeHashes: [hash], isBudgeted: true, addressHashes: [] };
  await creation.create({ id, created: at(minutes), ...owner, ...kind, ...notices, ...changes }, undefined);
  return id;
}

function remove(formId: string, minutes: number, budgets?: Buffer[]): Promise<boolean> {
  return store.remove({ tenantId, formId, actor, now: at(minutes), statuses: ['Draft', 'Locked'], budgets });
}

async function submit(formId: string, minutes: number, budgets?: Buffer[]): Promise<void> {
  const by = { role: 'applicant', account: '3f9ac0d21e77' };
  const change = { tenantId, formId, actor, now: at(minutes), by, budgets };
  const form = await store.move({ ...change, operation: 'submit' });
  expect(form).not.toHaveProperty('suppressed');
}

/** Returns the rows of a form, those with a suppressed notice in brackets. */
async function rowsOf(formId: string): Promise<string[]> {
  const sql = "SELECT kind, facts ? 'noticeSuppressed' AS s FROM outbox WHERE form_id = $1 ORDER BY sequence";
  const { rows } = await pool.query<{ kind: string; s: boolean }>(sql, [formId]);
  return rows.map(({ kind, s }) => (s ? `(${kind})` : kind));
}

const newHash = () => randomBytes(32);

describe('the budget of an address', () => {
  it('allows one of the notices about created and deleted drafts in a minute, and another after it', async () => {
    const [hash, before] = [newHash(), suppressed];
    const first = await create(hash, 0);
    await remove(first, 0.5, [hash]);
    expect(await rowsOf(first)).toEqual(['(subscribe)', 'form-created', '(form-deleted)']);
    const second = await create(hash, 1);
    await remove(second, 2, [hash]);
    expect(await rowsOf(second)).toEqual(['(subscribe)', 'form-created', 'form-deleted']);
    expect(suppressed - before).toBe(1);
  });

  it('allows receipts within a minute, until the address has got five mails in the hour', async () => {
    const hash = newHash();
    const ids: string[] = [];
    for (let nth = 0; nth < 3; nth += 1) {
      const id = await create(hash, 0);
      await submit(id, 0, [hash]);
      ids.push(id, await create(hash, 0, { status: 'Submitted' }));
    }
    expect((await Promise.all(ids.map(rowsOf))).flat().filter((kind) => /created|submitted/.test(kind))).toEqual([
      ...['form-created', 'form-submitted', 'form-submitted', '(form-created)', 'form-submitted', 'form-submitted'],
      ...['(form-created)', '(form-submitted)', '(form-submitted)'],
    ]);
    const later = await create(hash, 60);
    await submit(later, 60, [hash]);
    expect(await rowsOf(later)).toEqual(['(subscribe)', 'form-created', 'form-submitted']);
  });

  it('does not decide about others: their notices are sent, and only their created drafts count', async () => {
    const hash = newHash();
    const others = { isBudgeted: false };
    for (let nth = 0; nth < 6; nth += 1) {
      const id = await create(hash, 2 * nth, { ...others, status: 'Submitted' });
      expect(await rowsOf(id)).toEqual(['subscribe', 'form-submitted']);
    }
    const draft = await create(hash, 20, others);
    await submit(draft, 20);
    expect(await rowsOf(draft)).toEqual(['(subscribe)', '(form-created)', 'form-submitted']);
  });
});

describe('the deletion of a draft about which the applicant got no mail', () => {
  it('needs no mail, and one that somebody has opened does', async () => {
    const hash = newHash();
    await create(hash, 0);
    const [untouched, opened] = [await create(hash, 0), await create(hash, 0)];
    await store.keep({ tenantId, formId: opened, now: at(1) });
    for (const id of [untouched, opened]) await remove(id, 5);
    expect((await rowsOf(untouched)).at(-1)).toBe('(form-deleted)');
    expect((await rowsOf(opened)).at(-1)).toBe('form-deleted');
  });

  it('is told if a later event was', async () => {
    const hash = newHash();
    await create(hash, 0);
    const id = await create(hash, 0);
    await pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
      VALUES ($1, $2, 'form-expiring', '{"definitionId":"permit"}', $3, $3)`,
      [id, tenantId, at(3)],
    );
    await remove(id, 5);
    expect((await rowsOf(id)).at(-1)).toBe('form-deleted');
  });

  it('does not count towards the budget', async () => {
    const hash = newHash();
    await create(hash, 0);
    await remove(await create(hash, 0), 5, [hash]);
    expect((await rowsOf(await create(hash, 5))).at(-1)).toBe('form-created');
  });
});

describe('the budget decides about the notices of', () => {
  const caller = (changes: Partial<Caller> = {}): Caller => ({
    ...{ subject: 'alice', name: 'Alice', email: 'alice@example.org', issuer: 'demo', realm: 'demo', clientId: 'app' },
    ...{ isCore: false, roles: new Set(['applicant']), ...changes },
  });
  const form = (address: string, forAnother = false) => ({
    applicant: { channels: [{ channel: 'email' as const, address }] },
    forAnother,
  });
  const [verified, sms] = [{ isEmailVerified: true }, { channel: 'sms' as const, address: '+15550100001' }];
  const own = form('alice@example.org');

  it.each([
    ['a person who enters another address', caller(verified), form('bob@example.org'), true],
    ['a person whose own address is not verified', caller(), own, true],
    ['a person whose own address is verified', caller(verified), own, false],
    ['a person with an address in capitals', caller({ ...verified, email: 'Alice@Example.org' }), own, false],
    [
      'a person who adds a telephone number',
      caller(verified),
      { ...own, applicant: { channels: [...own.applicant.channels, sms] } },
      true,
    ],
    ['a person without a channel', caller(), { ...own, applicant: { channels: [] } }, false],
    ['a clerk who entered the form for someone else', caller(), form('bob@example.org', true), false],
    ['a service account', caller({ isServiceAccount: true }), form('bob@example.org'), false],
    ['an intake application', caller({ roles: new Set(['intake-application']) }), form('bob@example.org'), false],
  ])('%s', (_who, who, what, expected) => {
    expect([isBudgeted(who, 'applicant', what), isBudgeted(who, 'creator', what)]).toEqual([expected, expected]);
    for (const role of ['admin', 'clerk', 'intake'] as const) expect(isBudgeted(who, role, what)).toBe(false);
  });
});
