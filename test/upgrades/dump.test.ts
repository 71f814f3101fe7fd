// Runs this version on the stores of an old version: every form can be read and changed, a code works, the outbox is
// delivered, people stay signed in, and registrations work.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answered, call } from '../support/platform.ts';
import { until } from '../support/until.ts';
import { type Facts, readDump } from './dump.ts';
import { oldVersion } from './old-version.ts';
import { cookieOf, createTokens, signIn, type Who } from './people.ts';
import type { Product } from './products.ts';
import { startWorld, type World } from './world.ts';

let world: World;
let forms: Product;
let handler: Product;
/** A pod with a clock that is six minutes ahead, so that the access tokens of the dump have expired. */
let later: Product;
let facts: Facts;
let tokens: Record<Who, string>;
/** Keys of the events that waited in the outbox when the dump was made. */
let pending: string[];
beforeAll(async () => {
  const dump = readDump(oldVersion);
  facts = dump.facts;
  world = await startWorld({ dump });
  const { rows } = await world.pools.forms.query<{ key: string }>(
    "SELECT form_id || ':' || sequence AS key FROM outbox WHERE accepted IS NULL AND lane = 'events'",
  );
  pending = rows.map(({ key }) => key);
  const platform = world.start('platform-server', 'new');
  tokens = await createTokens(world);
  await platform;
  [forms, handler] = await Promise.all([world.start('forms', 'new'), world.start('token-handler', 'new')]);
});
afterAll(() => world?.close());

const ask = (method: string, path: string, as: Who, body?: unknown, headers: Record<string, string> = {}) =>
  call(`${forms.url}/form/v1/forms${path}`, { method, token: tokens[as], body, headers });
const isGone = (status: number) => status === 404 || status === 410;
const idOf = (name: string) => facts.forms[name] ?? '';

describe(`the forms of version ${oldVersion}`, () => {
  it('have the status and the data that they had', async () => {
    const gone = ['deleted', 'expired', 'pendingDeleted'];
    for (const [name, id] of Object.entries(facts.forms)) {
      const { status, body } = await ask('GET', `/${id}`, 'admin');
      expect([name, status]).toEqual([name, gone.includes(name) ? expect.toSatisfy(isGone) : 200]);
      if (gone.includes(name)) continue;
      const data = await ask('GET', `/${id}/data`, 'admin');
      expect([name, (body as { status: string }).status, data.body]).toEqual([
        name,
        statuses[name] ?? 'Draft',
        expect.objectContaining({ data: { name: `Kim of ${name}` } }),
      ]);
    }
  });

  it('are found in lists, and by the person who created them', async () => {
    const list = await ask('GET', '?top=50', 'admin');
    expect((list.body as { results: object[] }).results).toHaveLength(Object.keys(facts.forms).length - 3);
    const own = await ask('GET', '?mine=true', 'alice');
    expect((own.body as { results: { id: string }[] }).results.map(({ id }) => id).sort()).toEqual(
      [idOf('own'), idOf('pendingSubmitted')].sort(),
    );
  });

  it('a code that was mailed by the old version opens its form, once', async () => {
    const withCode = { 'X-Form-Code': facts.code };
    const opened = await ask('GET', `/${idOf('withCode')}/data`, 'intake', undefined, withCode);
    expect([opened.status, opened.body]).toEqual([200, expect.objectContaining({ data: { name: 'Kim of withCode' } })]);
    expect((await ask('GET', `/${idOf('codeUsed')}/data`, 'intake', undefined, withCode)).status).not.toBe(200);
  });

  it('a read session that a code of the old version opened continues', async () => {
    // A save whose body has no `files` needs an open read session.
    const saved = await ask('PUT', `/${idOf('codeUsed')}/data`, 'intake', { data: { name: 'Kim, once more' } });
    expect(saved.status).toBe(200);
    expect((await ask('PUT', `/${idOf('draft')}/data`, 'intake', { data: { name: 'Kim' } })).status).toBe(400);
  });

  it('a repeated create with its key returns the form that the old version created', async () => {
    const { key, body } = facts.idempotency;
    const repeated = await ask('POST', '', 'intake', body, { 'Idempotency-Key': key });
    expect([repeated.status, (repeated.body as { id: string }).id]).toEqual([201, idOf('withKey')]);
  });

  it('can be saved, submitted, unlocked and released', async () => {
    for (const name of ['draft', 'withKey', 'warned', 'pendingCreated', 'own']) {
      const as = name === 'own' ? 'alice' : 'intake';
      const saved = await ask('PUT', `/${idOf(name)}/data`, as, { data: { name: 'Kim, changed' }, files: {} });
      expect([name, saved.status]).toEqual([name, 200]);
      const submitted = await ask('POST', `/${idOf(name)}`, as, { operation: 'submit' });
      expect([name, submitted.status]).toEqual([name, 200]);
    }
    for (const [name, operation] of [
      ['locked', 'unlock'],
      ['held', 'release'],
      ['submitted', 'archive'],
    ] as const)
      expect([name, (await ask('POST', `/${idOf(name)}`, 'admin', { operation })).status]).toEqual([name, 200]);
  });

  it('the expiry continues', async () => {
    await world.reconcile('new');
    const { rows } = await world.pools.forms.query<{ outcome: string }>(
      'SELECT outcome FROM reconciler_runs ORDER BY finished DESC LIMIT 1',
    );
    expect(rows).toEqual([{ outcome: 'succeeded' }]);
  });

  it('the events that waited are delivered with the keys that the old version gave them', async () => {
    const waiting = `SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL AND kind NOT IN ('remove-subscriber')`;
    await until('deliveries', async () => (await world.pools.forms.query<{ n: number }>(waiting)).rows[0]?.n === 0);
    const { rows } = await world.pools.platform.query<{ key: string }>('SELECT key FROM event_keys');
    expect(pending.length).toBeGreaterThan(3);
    expect(rows.map(({ key }) => key)).toEqual(expect.arrayContaining(pending));
  });
});

const statuses: Record<string, string> = {
  submitted: 'Submitted',
  archived: 'Archived',
  locked: 'Locked',
  pendingSubmitted: 'Submitted',
};

describe(`the sessions of version ${oldVersion}`, () => {
  beforeAll(async () => {
    world.advance(310_000);
    later = await world.start('token-handler', 'new');
  });

  const visit = (name: string, path: string, { url = handler.url, method = 'GET' } = {}): Promise<Answered> =>
    call(`${url}/token-handler${path}`, {
      method,
      headers: cookieOf(facts.sessions[name] as Facts['sessions'][string]),
    });

  it('continue, with their access token and their CSRF token', async () => {
    expect((await visit('used', '/sessions')).status).toBe(200);
    expect((await visit('used', '/targets/api/things', { method: 'POST' })).status).toBe(200);
    expect(world.upstream.last().headers.authorization).toMatch(/^Bearer ey/);
  });

  it('are listed and can be revoked', async () => {
    const listed = await visit('used', '/sessions');
    const handles = (listed.body as { id: string }[]).map(({ id }) => id);
    expect(handles).toEqual(expect.arrayContaining([facts.sessions.used?.handle, facts.sessions.revoked?.handle]));
    const ended = await visit('used', `/sessions/${facts.sessions.revoked?.handle}`, { method: 'DELETE' });
    expect([ended.status, (await visit('revoked', '/sessions')).status]).toEqual([200, 401]);
  });

  it('are refreshed with the tokens and the registration of the old version', async () => {
    const tokenOf = async (url: string) => {
      expect((await visit('refreshed', '/targets/api/things', { url })).status).toBe(200);
      return world.upstream.last().headers.authorization;
    };
    const before = await tokenOf(handler.url);
    expect(await tokenOf(later.url)).not.toBe(before);
  });

  it('end if a pod of the old version died while it refreshed them', async () => {
    // The dead pod may have used the refresh token, so no pod may present it again.
    expect((await visit('abandoned', '/sessions')).status).toBe(200);
    const { url } = later;
    await expect.poll(async () => (await visit('abandoned', '/targets/api/things', { url })).status).toBe(401);
  });
});

describe(`the registrations of version ${oldVersion}`, () => {
  it('let people sign in, and end their sessions', async () => {
    const { browser, csrf } = await signIn(world, later.url);
    const own = `${later.url}/token-handler/sessions`;
    expect((await browser.request(own)).status).toBe(200);
    const [{ id } = { id: '' }] = JSON.parse((await browser.request(own)).text) as { id: string }[];
    const ended = await browser.request(`${own}/${id}`, { method: 'DELETE', headers: { 'X-XSRF-TOKEN': csrf } });
    expect(ended.status).toBe(200);
  });
});
