// Tests the records of uploaded files: their limits under concurrency, and that each way of deleting a form finds them.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { type SharedPool, unsharedPool } from '../../service/postgres/shared-pool.ts';
import { eraseAgain } from '../expiry/erasure-store.ts';
import { formMigrations } from '../expiry/migrations.ts';
import { createFormStore, type FormStore } from './store.ts';
import { createUploadStore, type UploadStore } from './upload-store.ts';

const now = new Date('2026-03-20T10:00:00.123Z');
const tenantId = 'urn:example:tenant';
const actor = { id: 'a', name: 'A' };
const statuses = ['Draft', 'Submitted'] as const;
const newUrn = () => `urn:example:platform:file-service:v1:/files/${randomUUID()}`;

let database: TestDatabase;
let forms: FormStore;
let uploads: UploadStore;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  const pool = unsharedPool(database.pool);
  forms = createFormStore(pool);
  uploads = createUploadStore({ pool, limits: { files: 3, bytes: 1_000 }, deleteFiles: true });
});
afterAll(() => database.drop());

async function addForm(files: object = {}): Promise<string> {
  const id = randomUUID();
  await database.pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
      anonymous_applicant, one_per_applicant, applicant, last_accessed, files)
    VALUES ($1, $2, 'permit', 'Draft', $3, '{"id":"k","name":"K"}', 'core', true, false, '{}', $3, $4)`,
    [id, tenantId, now, JSON.stringify(files)],
  );
  return id;
}

const keyOf = (formId: string) => ({ formId, tenantId, uploadId: randomUUID() });
const count = (formId: string, size: number) => uploads.count({ ...keyOf(formId), size, now });

/** Counts and records an upload. Returns its URN. */
async function upload(formId: string): Promise<string> {
  const [key, urn] = [keyOf(formId), newUrn()];
  expect(await uploads.count({ ...key, size: 1, now })).toBe(true);
  expect(await uploads.keep({ ...key, urn, now })).toBe(true);
  return urn;
}

async function filesOf(formId: string): Promise<{ kind: string; files: string[] }[]> {
  const sql = `SELECT kind, facts -> 'files' AS files FROM outbox WHERE form_id = $1 ORDER BY sequence`;
  return (await database.pool.query(sql, [formId])).rows;
}

it('concurrent uploads for one form cannot exceed its limit together', async () => {
  const id = await addForm();
  const counted = await Promise.all([1, 2, 3, 4, 5, 6].map(() => count(id, 1)));
  expect(counted.filter(Boolean)).toHaveLength(3);
  expect(await count(await addForm(), 1)).toBe(true);
});

it('the total size of a form’s files is limited to the byte, and an upload that was refused does not count', async () => {
  const id = await addForm();
  const refused = keyOf(id);
  expect(await uploads.count({ ...refused, size: 1_000, now })).toBe(true);
  expect(await count(id, 1)).toBe(false);
  await uploads.uncount(refused);
  expect([await count(id, 999), await count(id, 2), await count(id, 1)]).toEqual([true, false, true]);
});

it.each(['Locked', 'Submitted'])(
  'a form that is %s takes no file, and one of another tenant neither',
  async (status) => {
    const id = await addForm();
    expect(await uploads.count({ ...keyOf(id), tenantId: 'urn:example:another', size: 1, now })).toBe(false);
    await database.pool.query('UPDATE forms SET status = $2 WHERE id = $1', [id, status]);
    expect(await count(id, 1)).toBe(false);
  },
);

it('a deletion lists the files that the form names and those that were only uploaded, each once', async () => {
  const [named, other] = [newUrn(), newUrn()];
  const id = await addForm({ a: named, b: other });
  const [key, unnamed] = [keyOf(id), await upload(id)];
  await uploads.count({ ...key, size: 1, now });
  await uploads.keep({ ...key, urn: named, now });
  await count(id, 1);
  expect(await forms.remove({ formId: id, tenantId, actor, now, statuses })).toBe(true);
  expect(await filesOf(id)).toEqual([{ kind: 'form-deleted', files: [named, other, unnamed].sort() }]);
});

it('a deletion that is repeated after a restore lists the uploaded files', async () => {
  const id = await addForm();
  const urn = await upload(id);
  const deleted = { formId: id, tenantId, definitionId: 'permit', anonymousApplicant: true, notified: true };
  await eraseAgain(database.pool, [{ ...deleted, deleted: now.toISOString(), sequence: null }], now);
  expect(await filesOf(id)).toEqual([{ kind: 'form-deleted', files: [urn] }]);
});

it('a file whose upload ends while its form is being deleted is deleted too', async () => {
  const id = await addForm();
  const [key, urn] = [keyOf(id), newUrn()];
  await uploads.count({ ...key, size: 1, now });
  let keeping: Promise<boolean> | undefined;
  await withTransaction(database.pool, async (client) => {
    const pool: SharedPool = {
      query: (_requester, text, values) => client.query(text, values),
      transaction: (_requester, work) => work(client),
    };
    await createFormStore(pool).remove({ formId: id, tenantId, actor, now, statuses });
    keeping = uploads.keep({ ...key, urn, now });
  });
  expect(await keeping).toBe(false);
  expect(await filesOf(id)).toEqual([
    { kind: 'form-deleted', files: [] },
    { kind: 'remove-files', files: [urn] },
  ]);
});
