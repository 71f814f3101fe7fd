// Tests the list of the caller's own forms, the order and the totals of lists, and the expiry dates and holds in
// responses.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permit, startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { formList } from './responses.ts';

const day = 86_400_000;
let forms: TestForms;
const ids: Record<string, string> = {};

beforeAll(async () => {
  forms = await startTestForms();
  await forms.define({
    ...permit,
    id: 'short',
    retention: { lockAfter: 'P2D', deleteAfter: 'P1D', warnBefore: 'P0D' },
  });
  for (const [name, as, definitionId] of [
    ['first', 'alice', 'permit'],
    ['anonymous', 'intake', 'permit'],
    ['second', 'alice', 'short'],
    ['bobs', 'bob', 'permit'],
    ['third', 'alice', 'permit'],
  ] as const) {
    ids[name] = await forms.draft({ as, definitionId });
    forms.advance(1_000);
  }
  await forms.setStatus(ids.second ?? '', 'Locked');
  await forms.setStatus(ids.anonymous ?? '', 'Submitted');
});
afterAll(() => forms.close());

type Who = Parameters<TestForms['token']>[0];

interface Listed {
  results: { id: string; status: string; lockOn: string | null; deleteOn: string | null; lastAccessed: string }[];
  page: { next: string | null; total?: number; totalIsMinimum?: true };
}

const nameOf = (id: string) => Object.keys(ids).find((name) => ids[name] === id);

async function list(query: string, as: Who = 'admin') {
  const { status, body } = await forms.ask('GET', `?${query}`, { as });
  expect(status).toBe(200);
  formList.parse(body);
  const { results, page } = body as Listed;
  return { results, page, names: results.map(({ id }) => nameOf(id)) };
}

describe('mine=true', () => {
  it('lists the forms that a signed-in person created, and no others', async () => {
    expect((await list('mine=true', 'alice')).names).toEqual(['third', 'second', 'first']);
    expect((await list('mine=true', 'bob')).names).toEqual(['bobs']);
    expect((await list('mine=true', 'nobody')).names).toEqual([]);
  });

  it('lists no form of an anonymous applicant to the intake application that created it', async () => {
    expect((await list('mine=true', 'intake')).names).toEqual([]);
  });

  it('does not list the forms of the same subject at another identity provider or tenant', async () => {
    const { rows } = await forms.pool.query<{ subject: string }>(
      `SELECT created_by ->> 'id' AS subject FROM forms WHERE id = $1`,
      [ids.first],
    );
    const token = await forms.tokenWith({ realm: 'other', ...(rows[0] && { subject: rows[0].subject }) });
    expect((await forms.ask('GET', '?mine=true', { token })).body).toMatchObject({ results: [] });
  });

  it('combines with criteria and pages', async () => {
    const criteria = encodeURIComponent('{"statusEquals":"Draft"}');
    const first = await list(`mine=true&top=1&criteria=${criteria}`, 'alice');
    expect(first.names).toEqual(['third']);
    const second = await list(`mine=true&top=1&criteria=${criteria}&after=${first.page.next}`, 'alice');
    expect([second.names, second.page.next]).toEqual([['first'], null]);
  });

  it.each(['mine=true&includeData=true', 'mine=false', 'mine=true&mine=false'])(
    'does not open the list to others: %s',
    async (query) => {
      expect([400, 403]).toContain((await forms.ask('GET', `?${query}`, { as: 'alice' })).status);
    },
  );

  it('does not show the applicant’s addresses or the hold', async () => {
    const { results } = await list('mine=true', 'alice');
    for (const one of results) expect(JSON.stringify(one)).not.toMatch(/channels|"hold"|@/i);
  });
});

describe('the order of a list', () => {
  it('is by creation or by status, in both directions', async () => {
    expect((await list('sortDirection=asc')).names).toEqual(['first', 'anonymous', 'second', 'bobs', 'third']);
    expect((await list('sortBy=status&sortDirection=asc')).names).toEqual([
      ...['first', 'bobs', 'third'],
      ...['second', 'anonymous'],
    ]);
    expect((await list('sortBy=status')).names).toEqual(['anonymous', 'second', 'third', 'bobs', 'first']);
  });

  it.each(['sortBy=status&sortDirection=asc', 'sortBy=status', 'sortDirection=asc', ''])(
    'holds over pages, without a gap or a repetition: %s',
    async (order) => {
      const { names } = await list(order);
      const paged: (string | undefined)[] = [];
      for (let after = ''; ; ) {
        const page = await list(`${order}&top=2&after=${after}`);
        paged.push(...page.names);
        if (page.page.next === null) break;
        after = page.page.next;
      }
      expect(paged).toEqual(names);
    },
  );

  it('belongs to a cursor: another order rejects it', async () => {
    const { page } = await list('top=1');
    const response = await forms.ask('GET', `?sortBy=status&after=${page.next}`, { as: 'admin' });
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/after' }] } });
  });
});

describe('includeTotal=true', () => {
  it('counts the forms on all pages', async () => {
    expect((await list('top=2')).page).not.toHaveProperty('total');
    expect((await list('top=2&includeTotal=true')).page).toMatchObject({ total: 5, size: 2 });
    expect((await list('includeTotal=true&mine=true', 'alice')).page).toMatchObject({ total: 3 });
  });

  it('counts no more than 10,000, and says that there are more', async () => {
    await forms.pool.query(
      `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
         anonymous_applicant, one_per_applicant, applicant, last_accessed)
       SELECT gen_random_uuid(), tenant_id, 'many', 'Draft', created, created_by, created_by_issuer, true, false,
         '{"channels":[]}', last_accessed FROM forms CROSS JOIN generate_series(1, 10001) WHERE id = $1`,
      [ids.first],
    );
    const criteria = encodeURIComponent('{"definitionIdEquals":"many"}');
    expect((await list(`top=1&includeTotal=true&criteria=${criteria}`)).page).toMatchObject({
      ...{ total: 10_000, totalIsMinimum: true },
    });
    await forms.pool.query("DELETE FROM forms WHERE definition_id = 'many'");
  });
});

describe('lockOn and deleteOn', () => {
  const dates = async (id: string | undefined) => {
    const { body } = await forms.ask('GET', `/${id}`, { as: 'admin' });
    const { lastAccessed, locked, lockOn, deleteOn } = body as Record<string, string | null>;
    const time = (text: string | null | undefined) => (text ? Date.parse(text) : null);
    return { since: time(locked) ?? time(lastAccessed) ?? 0, lockOn: time(lockOn), deleteOn: time(deleteOn) };
  };

  it('of a draft follow from its last access and the default periods', async () => {
    const { since, lockOn, deleteOn } = await dates(ids.first);
    expect([lockOn, deleteOn]).toEqual([since + 15 * day, since + 30 * day]);
    const { results } = await list('');
    expect(results.find(({ id }) => id === ids.first)).toMatchObject({
      lockOn: new Date(since + 15 * day).toISOString(),
    });
  });

  it('of a locked form follow from its lock and the periods of its definition', async () => {
    const { since, lockOn, deleteOn } = await dates(ids.second);
    expect([lockOn, deleteOn]).toEqual([null, since + day]);
  });

  it('are null for forms that do not expire: submitted, held, or of a definition that cannot be used', async () => {
    expect(await dates(ids.anonymous)).toMatchObject({ lockOn: null, deleteOn: null });
    await forms.ask('POST', `/${ids.bobs}`, { as: 'admin', body: { operation: 'hold' } });
    expect(await dates(ids.bobs)).toMatchObject({ lockOn: null, deleteOn: null });
    await forms.define({ ...permit, id: 'short', retention: { deleteAfter: 'P999999999999D' } });
    expect(await dates(ids.second)).toMatchObject({ lockOn: null, deleteOn: null });
  });

  it('follow the settings of the reconciler, as its last run recorded them', async () => {
    await forms.pool.query(
      `INSERT INTO reconciler_runs (generation, started, finished, outcome, counts, retention)
       VALUES (1, now(), now(), 'succeeded', '{}', $1)`,
      [{ warnBefore: 0, lockAfter: 5 * day, deleteAfter: 2 * day }],
    );
    forms.advance(61_000);
    const { since, lockOn, deleteOn } = await dates(ids.first);
    expect([lockOn, deleteOn]).toEqual([since + 5 * day, since + 7 * day]);
  });
});

describe('a hold', () => {
  const operate = (body: object) => forms.ask('POST', `/${ids.third}`, { as: 'admin', body });

  it('carries its reason and its author, to form-admin only, until it is released', async () => {
    const held = await operate({ operation: 'hold', reason: ' Appeal 12/2026 ' });
    const hold = { reason: 'Appeal 12/2026', by: { id: expect.any(String), name: expect.any(String) } };
    expect(held).toMatchObject({ status: 200, body: { held: true, hold } });
    expect((await forms.ask('GET', `/${ids.third}`, { as: 'admin' })).body).toMatchObject({ held: true, hold });
    expect((await forms.ask('GET', `/${ids.third}`, { as: 'alice' })).body).not.toHaveProperty('hold');
    expect((await operate({ operation: 'release' })).body).toMatchObject({ held: false, hold: null });
  });

  it('that is repeated without a reason keeps its reason and its author; a new reason replaces both', async () => {
    await operate({ operation: 'hold', reason: 'Appeal 12/2026' });
    await forms.pool.query(`UPDATE forms SET held_by = '{"id": "first", "name": "First"}' WHERE id = $1`, [ids.third]);
    const by = { id: 'first', name: 'First' };
    expect((await operate({ operation: 'hold' })).body).toMatchObject({ hold: { reason: 'Appeal 12/2026', by } });
    const { body } = await operate({ operation: 'hold', reason: 'Audit' });
    expect(body).toMatchObject({ hold: { reason: 'Audit', by: { id: expect.not.stringMatching('first') } } });
    expect((await operate({ operation: 'release' })).body).toMatchObject({ held: false, hold: null });
  });

  it('needs no reason, and other operations take none', async () => {
    expect((await operate({ operation: 'hold' })).body).toMatchObject({ hold: { reason: null } });
    const rejected = await operate({ operation: 'release', reason: 'done' });
    expect(rejected).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/reason', detail: 'is only for hold' }] },
    });
  });
});
