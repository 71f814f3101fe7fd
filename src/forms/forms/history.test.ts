// Tests what the history of a form contains, who may read it, and that it identifies no person.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { formHistory } from './responses.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const operate = async (id: string, operation: string, as: Who = 'admin') => {
  const { status } = await forms.ask('POST', `/${id}`, { as, body: { operation } });
  expect([operation, status]).toEqual([operation, operation === 'send-code' ? 202 : 200]);
  forms.advance(1_000);
};
const ask = (id: string, as: Who = 'admin') => forms.ask('GET', `/${id}/history`, { as });
const read = async (id: string, as?: Who) => formHistory.parse((await ask(id, as)).body);
const save = (id: string) =>
  forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'history-canary' }, files: {} } });

describe('the history of a form', () => {
  it('lists each change with its time and the role that allowed it, oldest first', async () => {
    const id = await forms.draft();
    await save(id);
    await operate(id, 'send-code', 'intake');
    await operate(id, 'submit', 'intake');
    await operate(id, 'to-draft', 'assessor');
    await operate(id, 'submit', 'intake');
    for (const operation of ['hold', 'release', 'archive']) await operate(id, operation);
    const { results, truncated } = await read(id);
    expect(results.map(({ event, by }) => `${event} ${by.role}${by.isCaller ? ' (me)' : ''}`)).toEqual([
      'created intake',
      'code-sent intake',
      'submitted intake',
      'to-draft assessor',
      'submitted intake',
      'held admin (me)',
      'released admin (me)',
      'archived admin (me)',
    ]);
    expect(truncated).toBe(false);
    const times = results.map(({ time }) => time);
    expect(times).toEqual([...times].sort());
    expect(times[0]).toBe(((await forms.ask('GET', `/${id}`, { as: 'admin' })).body as { created: string }).created);
  });

  it.each([
    ['clerk', 'clerk', 'applicant'],
    ['alice', 'applicant', 'applicant'],
    ['intake', 'intake', 'intake'],
  ] as const)('keeps the submission of a form that %s created and submitted at once', async (as, first, later) => {
    const applicant = { channels: [{ channel: 'email', address: 'ana@example.org' }] };
    const created = await forms.ask('POST', '', {
      as,
      body: {
        ...{ definitionId: 'permit', data: { name: 'Ana' }, submit: true },
        ...(as === 'intake' && { applicant }),
      },
    });
    const { id } = created.body as { id: string };
    forms.advance(1_000);
    await operate(id, 'to-draft', 'assessor');
    await operate(id, 'submit', as);
    const entries = (await read(id)).results;
    expect(entries.map(({ event, by }) => `${event} ${by.role}`)).toEqual([
      ...[`created ${as === 'intake' ? 'intake' : 'creator'}`, `submitted ${first}`],
      ...['to-draft assessor', `submitted ${later}`],
    ]);
    expect(entries[1]?.by.account).toBe(entries[3]?.by.account);
  });

  it('names an account by a pseudonym that differs in each form', async () => {
    const accounts: unknown[] = [];
    for (const id of [await forms.draft(), await forms.draft()]) {
      await operate(id, 'hold');
      await operate(id, 'release');
      const [created, ...own] = (await read(id)).results.map(({ by }) => by.account);
      expect(new Set(own).size).toBe(1);
      expect(own[0]).toMatch(/^[0-9a-f]{12}$/);
      accounts.push(created, own[0]);
    }
    expect(new Set(accounts).size).toBe(4);
  });

  it('is stored without names, subjects, addresses and form data, and deleted with the form', async () => {
    const id = await forms.draft({ as: 'alice' });
    await operate(id, 'hold');
    await operate(id, 'release');
    const stored = (await forms.pool.query('SELECT history::text AS text FROM forms WHERE id = $1', [id])).rows[0].text;
    expect(stored).toContain('released');
    expect(stored).not.toMatch(/alice|admin@|example\.(?:com|org)|history-canary|Alice/i);
    expect(JSON.parse(stored)[0]).toHaveLength(4);
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    expect((await ask(id)).status).toBe(410);
    expect((await forms.pool.query("SELECT FROM outbox WHERE facts::text LIKE '%released%'")).rowCount).toBe(0);
  });

  it('of a form that is older than histories lists its creation, submission and lock', async () => {
    const [sent, locked] = [await forms.draft(), await forms.draft()];
    await forms.setStatus(sent, 'Submitted');
    await forms.setStatus(locked, 'Locked');
    expect((await read(sent)).results).toMatchObject([
      { event: 'created' },
      { event: 'submitted', by: { role: null, account: null, isCaller: false } },
    ]);
    expect((await read(locked)).results).toMatchObject([
      { event: 'created' },
      { event: 'locked', by: { role: 'system' } },
    ]);
  });

  it('is for form-admin of the tenant', async () => {
    const id = await forms.draft();
    for (const who of ['intake', 'alice', 'clerk', 'assessor', 'nobody'] as const)
      expect([who, (await ask(id, who)).status]).toEqual([who, 403]);
    const other = await forms.tokenWith({ realm: 'other', roles: ['form-admin'] });
    expect((await forms.ask('GET', `/${id}/history`, { token: other })).status).toBe(404);
    expect((await forms.ask('GET', `/${id}/history`)).status).toBe(401);
    expect((await forms.ask('GET', '/nonsense/history', { as: 'admin' })).status).toBe(400);
  });

  it('does not set lastAccessed', async () => {
    const id = await forms.draft();
    const { body: before } = await forms.ask('GET', `/${id}`, { as: 'admin' });
    forms.advance(60_000);
    await ask(id);
    expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).body).toEqual(before);
  });
});
