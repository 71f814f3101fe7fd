// Tests the search of forms by the applicant's address, over HTTP.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase, placesOf } from '../../../test/support/database-dump.ts';
import { startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { formList } from '../forms/responses.ts';

let forms: TestForms;
const ids: Record<string, string> = {};
const email = (address: string) => ({ channel: 'email', address });
const sms = (address: string) => ({ channel: 'sms', address });

beforeAll(async () => {
  forms = await startTestForms();
  const made = {
    first: [email('Ana.Search@Example.org')],
    second: [sms('+1 (555) 010-9967'), email('ana.search@example.org')],
    other: [email('bo.search@example.org'), email('Bo.Search@example.org')],
    third: [email('ana.search@example.org')],
  };
  for (const [name, channels] of Object.entries(made)) {
    ids[name] = await forms.draft({ applicant: { channels } });
    forms.advance(60_000);
  }
  ids.signedIn = await forms.draft({ as: 'alice' });
});
afterAll(() => forms.close());

const find = (address: string, { query = '', ...options }: { query?: string; as?: 'alice'; token?: string } = {}) =>
  forms.ask('GET', query, { as: 'admin', headers: { 'X-Applicant-Address': address }, ...options });

async function found(address: string, query?: string): Promise<(string | undefined)[]> {
  const { status, body } = await find(address, query === undefined ? {} : { query });
  expect(status).toBe(200);
  const { results } = formList.parse(body);
  return results.map(({ id }) => Object.keys(ids).find((name) => ids[name] === id));
}

describe('X-Applicant-Address', () => {
  it.each(['ana.search@example.org', ' ANA.Search@example.ORG ', 'ana.search%40example.org'])(
    'finds the forms of an email address, newest first: %j',
    async (address) => expect(await found(address)).toEqual(['third', 'second', 'first']),
  );

  it.each(['+15550109967', '+1 (555) 010-9967', '0015550109967', '1.555.010.9967'])(
    'finds the forms of a telephone number: %j',
    async (address) => expect(await found(address)).toEqual(['second']),
  );

  it('finds the forms of people who signed in, by the address of their account', async () => {
    expect(await found('alice@example.com')).toEqual(['signedIn']);
    const token = await forms.tokenWith({ realmRoles: ['applicant'], claims: { email: 'Jo\u0301se@example.org' } });
    const created = await forms.ask('POST', '', { token, body: { definitionId: 'permit' } });
    ids.composed = (created.body as { id: string }).id;
    expect(await found('j%C3%B3se@example.org')).toEqual(['composed']);
    const mine = await find('alice@example.com', { query: '?mine=true' });
    expect(mine.body).toMatchObject({ results: [] });
  });

  it('finds nothing by a part of an address, or by one that no form has', async () => {
    for (const address of ['a@example.org', 'search@example.org', '5550109967', 'nobody@example.org'])
      expect(await found(address)).toEqual([]);
  });

  it('can be combined with criteria, order, pages and totals', async () => {
    const query = new URLSearchParams({ top: '2', sortDirection: 'asc', includeTotal: 'true' });
    const first = formList.parse((await find('ana.search@example.org', { query: `?${query}` })).body);
    expect([first.results.map(({ id }) => id), first.page.total]).toEqual([[ids.first, ids.second], 3]);
    expect(first.page).not.toHaveProperty('searchIncomplete');
    query.set('after', first.page.next ?? '');
    expect(await found('ana.search@example.org', `?${query}`)).toEqual(['third']);
    const submitted = new URLSearchParams({ criteria: '{"statusEquals":"submitted"}' });
    expect(await found('ana.search@example.org', `?${submitted}`)).toEqual([]);
  });

  it('is for form-admin only, also for one’s own forms', async () => {
    for (const query of ['', '?mine=true'])
      expect((await find('alice@example.com', { as: 'alice', query })).status).toBe(403);
  });

  it('finds no form of another tenant', async () => {
    const token = await forms.tokenWith({ realm: 'other', roles: ['form-admin'] });
    expect((await find('ana.search@example.org', { token })).body).toMatchObject({ results: [] });
    const { rows } = await forms.pool.query('SELECT count(DISTINCT address_hash)::int AS n FROM applicant_addresses');
    expect(rows[0].n).toBe(5);
  });

  it.each([
    '',
    'ana',
    'a b@example.org',
    'ana@example.org,bo@example.org',
    '12345',
    '%E0%A4%A',
    'jos\u00e9@example.org',
    'x'.repeat(255),
  ])('with %j is 400 with a pointer, and the response does not repeat it', async (address) => {
    const { status, body } = await find(address);
    expect(status).toBe(400);
    const errors = [
      { pointer: '/headers/x-applicant-address', detail: expect.stringMatching(/^must be one email address/) },
    ];
    expect(body).toMatchObject({ errors });
    expect(body).toEqual((await find('another invalid address')).body);
  });

  it('is the only way: an address in the query is refused', async () => {
    const criteria = encodeURIComponent('{"applicantAddressEquals":"ana.search@example.org"}');
    const { status, text } = await forms.ask('GET', `?criteria=${criteria}`, { as: 'admin' });
    expect(status).toBe(400);
    expect(text).not.toContain('ana.search');
  });

  it('has an audit event with the ids of the found forms, also if it is refused', async () => {
    const event = async (query: string, headers: Record<string, string>, as: 'admin' | 'alice' = 'admin') => {
      const before = forms.log.lines().length;
      await forms.ask('GET', query, { as, headers });
      const line = () =>
        forms.log
          .lines()
          .slice(before)
          .find(({ msg }) => msg === 'request');
      await expect.poll(line).toBeDefined();
      return line()?.audit;
    };
    const of = { 'X-Applicant-Address': 'bo.search@example.org' };
    const form = { type: 'form', ids: [ids.other] };
    const admin = { actor: { kind: 'account', id: 'admin' }, outcome: 'succeeded' };
    expect(await event('', of)).toMatchObject({ ...admin, action: 'form.search', object: form });
    expect(await event('?includeData=true', of)).toMatchObject({ ...admin, action: 'form.read-data', object: form });
    const all = { ids: expect.arrayContaining(['first', 'second', 'other', 'third'].map((name) => ids[name])) };
    expect(await event('?includeData=true', {})).toMatchObject({ action: 'form.read-data', object: all });
    const refused = { object: { type: 'form' }, outcome: 'refused', actor: { id: 'alice' } };
    expect(await event('', of, 'alice')).toMatchObject({ ...refused, action: 'form.search' });
    expect(await event('?includeData=true', {}, 'alice')).toMatchObject({ ...refused, action: 'form.read-data' });
    for (const query of ['', '?includeData=false', '?mine=true']) expect(await event(query, {})).toBeUndefined();
    expect(await event('', {}, 'alice')).toBeUndefined();
  });

  it('leaves no address in logs, and only HMACs in its table, which are deleted with the form', async () => {
    await find('canary.search@example.org');
    expect(forms.log.text()).not.toMatch(/canary\.search|ana\.search|5550109967/i);
    const rows = async () =>
      (await forms.pool.query('SELECT * FROM applicant_addresses WHERE form_id = $1', [ids.second])).rows;
    expect((await rows()).map(({ address_hash: hash }) => hash.length)).toEqual([16, 16]);
    const dump = await dumpDatabase(forms.pool);
    expect(placesOf(dump, 'ana.search').filter((place) => place.includes('applicant_addresses'))).toEqual([]);
    expect((await forms.ask('DELETE', `/${ids.second}`, { as: 'admin' })).status).toBe(204);
    expect(await rows()).toEqual([]);
    expect(await found('ana.search@example.org')).toEqual(['third', 'first']);
  });

  it('says so if existing forms are still being indexed, and the metric is 0', async () => {
    const metric = async () =>
      /^formgate_address_index_complete (\d)/m.exec(await (await fetch(`${forms.metricsUrl}/metrics`)).text())?.[1];
    expect(await metric()).toBe('1');
    await forms.pool.query('UPDATE address_index SET complete = false');
    expect((await find('ana.search@example.org')).body).toMatchObject({ page: { searchIncomplete: true } });
    expect((await forms.ask('GET', '', { as: 'admin' })).body).not.toMatchObject({ page: { searchIncomplete: true } });
    expect(await metric()).toBe('0');
  });
});
