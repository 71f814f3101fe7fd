// Tests each rule for deleting forms, over HTTP. roles.test.ts tests access without a code.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { slowFiles } from '../../../test/support/poison.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const day = 24 * 3_600_000;
const file = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a553';
const remove = (id: string, as: Who = 'admin', code?: string) =>
  forms.ask('DELETE', `/${id}`, { as, ...(code !== undefined && { headers: { 'x-form-code': code } }) });

describe('DELETE', () => {
  it('returns 204 without a body', async () => {
    const { status, text } = await remove(await forms.draft());
    expect([status, text]).toEqual([204, '']);
  });

  it('removes the form, its codes and idempotency records, and leaves only a tombstone and outbox rows', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': code } });
    await forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': 'WRONG1' } });
    const { rows: before } = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [id]);
    const { address } = before[0].applicant.channels[0];
    expect((await remove(id)).status).toBe(204);
    const { rows: tables } = await forms.pool.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
    );
    for (const { name } of tables) {
      const { rows } = await forms.pool.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      const all = rows.map(({ row }) => row).join('\n');
      expect([name, all.includes(address)]).toEqual([name, false]);
      if (!['outbox', 'tombstones'].includes(name)) expect([name, all.includes(id)]).toEqual([name, false]);
    }
  });

  it('sends form-deleted with files and subscriber, but no form data', async () => {
    const id = await forms.draft();
    const body = { data: { name: 'delete-canary' }, files: { one: `${file};${file}` } };
    await forms.ask('PUT', `/${id}/data`, { as: 'intake', body });
    await expect
      .poll(
        async () =>
          (await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id])).rows[0].subscriber_id,
      )
      .not.toBeNull();
    const { rows: forma } = await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id]);
    expect((await remove(id)).status).toBe(204);
    const { rows } = await forms.pool.query("SELECT facts FROM outbox WHERE form_id = $1 AND kind = 'form-deleted'", [
      id,
    ]);
    expect(rows[0].facts).toMatchObject({
      definitionId: 'permit',
      files: [file],
      subscriberId: forma[0].subscriber_id,
    });
    expect(JSON.stringify(rows)).not.toContain('delete-canary');
  });

  it('deletes a form with a name of a file that is slow to search', async () => {
    const id = await forms.draft();
    const body = { data: {}, files: JSON.parse(slowFiles) };
    expect((await forms.ask('PUT', `/${id}/data`, { as: 'intake', body })).status).toBe(200);
    expect((await remove(id)).status).toBe(204);
  });

  it('by an intake application requires a verified code, in header or query', async () => {
    const [one, other] = [await forms.draft(), await forms.draft()];
    expect((await remove(one, 'intake')).status).toBe(400);
    expect((await remove(one, 'intake', 'WRONG1')).status).toBe(403);
    expect((await remove(one, 'intake', await forms.code(one))).status).toBe(204);
    const code = await forms.code(other);
    expect((await forms.ask('DELETE', `/${other}?code=${code}`, { as: 'intake' })).status).toBe(204);
  });

  it('by an intake application may use the code of its open read session', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': code } });
    expect((await remove(id, 'intake', code)).status).toBe(204);
  });

  it('of a held form is 409 to an intake application with the right code', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'hold' } });
    expect(await remove(id, 'intake', code)).toMatchObject({
      status: 409,
      body: { type: 'urn:formgate:problem:form-held' },
    });
  });

  it('by the creator requires no role', async () => {
    const subject = 'a creator without a role';
    const token = await forms.tokenWith({ realmRoles: ['applicant'], subject });
    const { body } = await forms.ask('POST', '', { token, body: { definitionId: 'permit' } });
    const without = await forms.tokenWith({ subject });
    expect((await forms.ask('DELETE', `/${(body as { id: string }).id}`, { token: without })).status).toBe(204);
  });

  it('sent ten times concurrently deletes once, and every response is 204', async () => {
    const id = await forms.draft();
    const responses = await Promise.all(Array.from({ length: 10 }, () => remove(id)));
    expect(responses.map(({ status }) => status)).toEqual(Array<number>(10).fill(204));
    const { rowCount } = await forms.pool.query("SELECT FROM outbox WHERE form_id = $1 AND kind = 'form-deleted'", [
      id,
    ]);
    expect(rowCount).toBe(1);
  });

  it('of a form that never existed is 404', async () => {
    expect((await remove('0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11')).status).toBe(404);
  });
});

describe('a deleted form', () => {
  const asks = (id: string, as: Who) =>
    ({
      read: forms.ask('GET', `/${id}`, { as }),
      'read data': forms.ask('GET', `/${id}/data`, { as }),
      'update data': forms.ask('PUT', `/${id}/data`, { as, body: { data: {}, files: {} } }),
      submit: forms.ask('POST', `/${id}`, { as, body: { operation: 'submit' } }),
    }) as const;

  it('is 410 for every request except a repeated delete, which is 204, for 30 days; then 404', async () => {
    const id = await forms.draft();
    await remove(id);
    for (const [what, response] of Object.entries(asks(id, 'intake')))
      expect([what, (await response).status]).toEqual([what, 410]);
    expect((await remove(id)).status).toBe(204);
    expect((await remove(id, 'intake')).status).toBe(204);
    forms.advance(30 * day - 60_000);
    expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).status).toBe(410);
    forms.advance(60_000);
    expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).status).toBe(404);
    expect((await remove(id)).status).toBe(404);
  });

  it('is 410 for its creator, and 204 for the creator’s repeated delete', async () => {
    const id = await forms.draft({ as: 'alice' });
    expect((await remove(id, 'alice')).status).toBe(204);
    for (const [what, response] of Object.entries(asks(id, 'alice')))
      expect([what, (await response).status]).toEqual([what, 410]);
    expect((await remove(id, 'alice')).status).toBe(204);
  });

  it('is 403 for callers who could not have had access to it', async () => {
    const [anonymous, signedIn] = [await forms.draft(), await forms.draft({ as: 'alice' })];
    await Promise.all([remove(anonymous), remove(signedIn)]);
    for (const id of [anonymous, signedIn])
      expect((await forms.ask('GET', `/${id}`, { as: 'nobody' })).status).toBe(403);
    expect((await remove(anonymous, 'nobody')).status).toBe(403);
    for (const response of Object.values(asks(signedIn, 'intake'))) expect((await response).status).toBe(403);
    expect((await remove(signedIn, 'intake')).status).toBe(403);
  });

  it('of another tenant is 404', async () => {
    const id = await forms.draft();
    await remove(id);
    const token = await forms.tokenWith({ realm: 'other', roles: ['form-admin'] });
    expect((await forms.ask('GET', `/${id}`, { token })).status).toBe(404);
    expect((await forms.ask('DELETE', `/${id}`, { token })).status).toBe(404);
  });

  it('leaves a tombstone without personal data', async () => {
    const id = await forms.draft({ as: 'alice' });
    await remove(id, 'alice');
    const { rows } = await forms.pool.query('SELECT * FROM tombstones WHERE form_id = $1', [id]);
    expect(Object.keys(rows[0]).sort()).toEqual([
      'anonymous_applicant',
      'definition_id',
      'deleted',
      'form_id',
      'notified',
      'tenant_id',
    ]);
  });
});
