// Tests each rule for listing and reading forms, over HTTP.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permit, startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { formList, form as formResponse } from './responses.ts';

let forms: TestForms;
let start: Date;
const ids: string[] = [];
const minute = 60_000;

/** Creates seven forms, a minute apart. They cover two definitions, every status, and anonymous applicants. */
beforeAll(async () => {
  forms = await startTestForms();
  await forms.define({ ...permit, id: 'licence' });
  start = forms.now();
  const made = [
    ['intake', 'permit', 'Draft'],
    ['intake', 'licence', 'Locked'],
    ['alice', 'permit', 'Submitted'],
    ['intake', 'permit', 'Archived'],
    ['bob', 'licence', 'Draft'],
    ['intake', 'licence', 'Submitted'],
    ['alice', 'licence', 'Draft'],
  ] as const;
  for (const [as, definitionId, status] of made) {
    const id = await forms.draft({ as, definitionId });
    if (status !== 'Draft') await forms.setStatus(id, status);
    ids.push(id);
    forms.advance(minute);
  }
});
afterAll(() => forms.close());

interface Listed {
  results: { id: string; [member: string]: unknown }[];
  page: { after: string | null; next: string | null; size: number };
}

const list = async (query: Record<string, string> = {}) => {
  const { status, body } = await forms.ask('GET', `?${new URLSearchParams(query)}`, { as: 'admin' });
  expect(status).toBe(200);
  formList.parse(body);
  return body as Listed;
};
const found = async (criteria: object) => {
  const { results } = await list({ criteria: JSON.stringify(criteria) });
  return results.map(({ id }) => ids.indexOf(id)).sort();
};

describe('GET /form/v1/forms', () => {
  it('is for form-admin only', async () => {
    for (const as of ['intake', 'alice', 'clerk', 'assessor', 'nobody'] as const)
      expect((await forms.ask('GET', '', { as })).status).toBe(403);
  });

  it('returns {results, page: {after, next, size}}, newest first', async () => {
    const { results, page } = await list();
    expect(results.map(({ id }) => ids.indexOf(id))).toEqual([6, 5, 4, 3, 2, 1, 0]);
    expect(page).toEqual({ after: null, next: null, size: 7 });
  });

  it('returns every form once over its pages, also while forms are created', async () => {
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const { results, page }: Listed = await list({ top: '3', ...(after !== null && { after }) });
      expect(page.after).toBe(after);
      expect(page.size).toBe(results.length);
      seen.push(...results.map(({ id }) => id));
      after = page.next;
      const { rows } = await forms.pool.query('SELECT count(*)::int AS forms FROM forms');
      if (rows[0].forms === 7) await forms.draft();
    } while (after !== null);
    expect(seen).toEqual([...ids].reverse());
    await forms.pool.query('DELETE FROM forms WHERE id <> ALL($1)', [ids]);
  });

  it('returns every form once if several have the same creation time', async () => {
    await forms.pool.query('UPDATE forms SET created = $1', [start]);
    const first = await list({ top: '4' });
    const second = await list({ top: '4', after: first.page.next ?? '' });
    expect(new Set([...first.results, ...second.results].map(({ id }) => id))).toEqual(new Set(ids));
    for (const [index, id] of ids.entries())
      await forms.pool.query('UPDATE forms SET created = $1 WHERE id = $2', [
        new Date(start.getTime() + index * minute),
        id,
      ]);
  });

  it('accepts an empty cursor for the first page, as the older platform does', async () => {
    expect(await list({ top: '3', after: '' })).toEqual(await list({ top: '3' }));
  });

  it.each([
    ['top', '0'],
    ['top', '101'],
    ['top', '1.5'],
    ['top', 'many'],
    ['after', 'MTA='],
    ['after', Buffer.from("1.'; DROP TABLE forms").toString('base64url')],
    ['includeData', 'yes'],
  ])('with %s=%s is 400 with a pointer', async (name, value) => {
    const response = await forms.ask('GET', `?${name}=${encodeURIComponent(value)}`, { as: 'admin' });
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer: `/query/${name}` }] } });
  });

  it('shows no form of another tenant', async () => {
    const token = await forms.tokenWith({ realm: 'other', roles: ['form-admin'] });
    expect((await forms.ask('GET', '', { token })).body).toMatchObject({ results: [] });
  });

  it('returns form data only with includeData=true', async () => {
    await forms.pool.query(`UPDATE forms SET data = '{"name":"Ana"}' WHERE id = $1`, [ids[0]]);
    const without = (await list()).results.find(({ id }) => id === ids[0]);
    expect(without).not.toHaveProperty('data');
    expect(without).not.toHaveProperty('files');
    const withData = (await list({ includeData: 'true' })).results.find(({ id }) => id === ids[0]);
    expect(withData).toMatchObject({ data: { name: 'Ana' }, files: {} });
  });

  it('ends a page with form data early, so that a response never has hundreds of megabytes', async () => {
    const large = JSON.stringify({ text: 'x'.repeat(3_000_000) });
    await forms.pool.query('UPDATE forms SET data = $1', [large]);
    const first = await list({ includeData: 'true' });
    expect(first.results.length).toBe(2);
    const second = await list({ includeData: 'true', after: first.page.next ?? '' });
    expect(second.results.map(({ id }) => ids.indexOf(id))).toEqual([4, 3]);
    await forms.pool.query(`UPDATE forms SET data = '{}'`);
  });
});

describe('criteria', () => {
  it('find by definition', async () => {
    expect(await found({ definitionIdEquals: 'licence' })).toEqual([1, 4, 5, 6]);
    expect(await found({ definitionIdEquals: 'no-such-definition' })).toEqual([]);
  });

  it.each(['Draft', 'draft', 'DRAFT'])('find by status in any case (%s)', async (status) => {
    expect(await found({ statusEquals: status })).toEqual([0, 4, 6]);
  });

  it('find by anonymous applicant', async () => {
    expect(await found({ anonymousApplicantEquals: true })).toEqual([0, 1, 3, 5]);
    expect(await found({ anonymousApplicantEquals: false })).toEqual([2, 4, 6]);
  });

  const at = (index: number) => new Date(start.getTime() + index * minute - 1_000).toISOString();

  it('find by ranges of creation and last access', async () => {
    expect(await found({ createDateAfter: at(2), createDateBefore: at(5) })).toEqual([2, 3, 4]);
    expect(await found({ lastAccessedAfter: at(5) })).toEqual([5, 6]);
    expect(await found({ lastAccessedBefore: at(1) })).toEqual([0]);
  });

  it('find by ranges of lock and submission', async () => {
    expect(await found({ lockedAfter: at(0) })).toEqual([1]);
    expect(await found({ lockedBefore: at(1) })).toEqual([]);
    expect(await found({ submittedAfter: at(0) })).toEqual([2, 3, 5]);
    expect(await found({ submittedBefore: at(4) })).toEqual([2, 3]);
  });

  it('combine', async () => {
    expect(
      await found({ statusEquals: 'draft', definitionIdEquals: 'licence', anonymousApplicantEquals: false }),
    ).toEqual([4, 6]);
  });

  it.each([
    ['{', '/query/criteria'],
    ['[]', '/query/criteria'],
    ['{"statusEquals":"open"}', '/query/criteria/statusEquals'],
    ['{"createDateAfter":"yesterday"}', '/query/criteria/createDateAfter'],
    ['{"anonymousApplicantEquals":"true"}', '/query/criteria/anonymousApplicantEquals'],
    ['{"definitionIdEquals":{"$gt":""}}', '/query/criteria/definitionIdEquals'],
    ['{"definitionIdEquals":"\\u0000"}', '/query/criteria/definitionIdEquals'],
    ['{"dataCriteria":{}}', '/query/criteria/dataCriteria'],
  ])('of %s are 400 with a pointer', async (criteria, pointer) => {
    const response = await forms.ask('GET', `?criteria=${encodeURIComponent(criteria)}`, { as: 'admin' });
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
  });
});

describe('the applicant’s addresses', () => {
  const applicant = {
    addressAs: 'Ana',
    channels: [
      { channel: 'email', address: 'ana.masked@example.org' },
      { channel: 'sms', address: '+15550109967' },
    ],
  };

  it('are shown to form-admin only, masked, in lists and in one form', async () => {
    const id = await forms.draft({ applicant });
    const masked = {
      addressAs: 'Ana',
      channels: [
        { channel: 'email', address: 'a***@example.org' },
        { channel: 'sms', address: '***67' },
      ],
    };
    const one = await forms.ask('GET', `/${id}`, { as: 'admin' });
    expect(one.body).toMatchObject({ applicant: masked });
    formResponse.parse(one.body);
    expect((await list()).results.find((form) => form.id === id)).toMatchObject({ applicant: masked });
    for (const as of ['intake', 'clerk', 'assessor'] as const) {
      const { status, body, text } = await forms.ask('GET', `/${id}`, { as });
      expect(status).toBe(200);
      expect(body).toMatchObject({ applicant: { addressAs: 'Ana' } });
      expect(text).not.toContain('channels');
      expect(text).not.toContain('example.org');
    }
  });
});

describe('GET /form/v1/forms/{id}', () => {
  it('returns the form without form data, and does not set lastAccessed', async () => {
    const id = await forms.draft({ as: 'alice' });
    const first = await forms.ask('GET', `/${id}`, { as: 'alice' });
    forms.advance(minute);
    const second = await forms.ask('GET', `/${id}`, { as: 'admin' });
    expect(first.body).toMatchObject({ id, status: 'Draft', held: false, anonymousApplicant: false, locked: null });
    expect(first.body).not.toHaveProperty('data');
    expect((second.body as { lastAccessed: string }).lastAccessed).toBe(
      (first.body as { lastAccessed: string }).lastAccessed,
    );
  });

  it('of an id that is not a UUID is 400 with a pointer', async () => {
    const response = await forms.ask('GET', '/not-a-uuid', { as: 'admin' });
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer: '/params/formId' }] } });
  });

  it('of an unknown id is 404', async () => {
    expect((await forms.ask('GET', '/0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11', { as: 'admin' })).status).toBe(404);
  });
});
