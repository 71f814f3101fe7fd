// Tests what happens if a person or an administrator ends a session. The sessions are in memory, and the other modules
// are scripted. Tests with an identity provider are in routes.test.ts.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Visitor } from '../../../test/support/memory-sessions.ts';
import { ask, other, type SessionRoutes, startSessionRoutes } from '../../../test/support/session-routes.ts';
import { Problem } from '../../service/http/problem.ts';
import { deleteSessionRoute, listSessionsRoute } from './routes.ts';

const unavailable = () => Promise.reject(new Problem('unavailable', 'The store cannot be reached.'));

let routes: SessionRoutes;
beforeEach(async () => {
  routes = await startSessionRoutes();
});
afterEach(() => routes.app.close());

const isLive = async ({ session }: Visitor) => (await routes.world.sessions.read(session.handle)) !== undefined;
const ben = { session: { user: { id: 'ben', name: 'Ben', roles: [] } } };

describe('a person who ends a session', () => {
  it('ends another of their own, keeps the cookies, and is counted and audited', async () => {
    const [own, second] = [await routes.world.open(), await routes.world.open()];
    const { status, body, headers } = await routes.end(own, second.session.handle);
    expect([status, body, headers.getSetCookie()]).toEqual([200, { deleted: true }, []]);
    expect([await isLive(own), await isLive(second)]).toEqual([true, false]);
    expect(routes.logouts).toEqual(['person']);
    const object = { type: 'session', id: second.session.handle };
    expect(await routes.app.requestLines(1)).toMatchObject([{ audit: { action: 'session.revoke', object } }]);
    expect(deleteSessionRoute(routes.options).responses[200]?.schema?.parse(body)).toEqual(body);
  });

  it('succeeds although the store fails after the session has ended; lists no longer contain the session', async () => {
    const [own, second] = [await routes.world.open(), await routes.world.open()];
    const { index } = routes.world.store;
    const { remove } = index;
    index.remove = unavailable;
    const { status, body } = await routes.end(own, second.session.handle);
    expect([status, body, routes.logouts]).toEqual([200, { deleted: true }, ['person']]);
    expect(await routes.app.requestLines(1)).toMatchObject([{ audit: { outcome: 'succeeded' } }]);
    index.remove = remove;
    const { tenantId, user } = own.session;
    const handles = (await routes.world.sessions.ofUser(tenantId, user.id)).map(({ session }) => session.handle);
    expect(handles).toEqual([own.session.handle]);
  });

  it('loses the cookies with the session of the cookie', async () => {
    const own = await routes.world.open();
    const { status, headers } = await routes.end(own, own.session.handle);
    expect([status, await isLive(own)]).toEqual([200, false]);
    const past = 'Expires=Thu, 01 Jan 1970 00:00:00 GMT';
    expect(headers.getSetCookie()).toEqual([
      `formgate_session=; Path=/; ${past}; HttpOnly; SameSite=Lax`,
      `XSRF-TOKEN=; Path=/; ${past}; SameSite=Strict`,
    ]);
  });

  it.each<[string, Parameters<SessionRoutes['world']['open']>[0]]>([
    ['of another person', ben],
    ['of a person with the same id in another tenant', { session: { tenantId: other.id } }],
  ])('gets 404 for the session %s, which stays open', async (_whose, whose) => {
    const [own, foreign] = [await routes.world.open(), await routes.world.open(whose)];
    const { status, body } = await routes.end(own, foreign.session.handle);
    expect([status, body.type]).toEqual([404, expect.stringContaining('not-found')]);
    expect([await isLive(foreign), routes.logouts]).toEqual([true, []]);
  });

  it('gets 403 without the CSRF token, or from another site; the session stays open', async () => {
    const [own, second] = [await routes.world.open(), await routes.world.open()];
    for (const headers of [{ 'x-xsrf-token': '' }, { origin: 'https://evil.example' }])
      expect((await routes.end(own, second.session.handle, headers)).status).toBe(403);
    expect([await isLive(second), routes.logouts]).toEqual([true, []]);
  });

  it('gets 401 on the domain of another tenant, and without a session', async () => {
    const own = await routes.world.open();
    expect((await routes.end(own, own.session.handle, { 'x-platform-tenant': other.id })).status).toBe(401);
    const { status, headers } = await ask(`${routes.app.url}/token-handler/v1/sessions/${own.session.handle}`, {
      method: 'DELETE',
    });
    expect([status, headers.get('www-authenticate'), await isLive(own)]).toEqual([401, 'Bearer', true]);
  });
});

describe('an administrator who ends a session', () => {
  it('ends one of the tenant, and is counted and audited', async () => {
    const person = await routes.world.open();
    const { status, body, headers } = await routes.end('admin', person.session.handle);
    expect([status, body, headers.getSetCookie()]).toEqual([200, { deleted: true }, []]);
    expect([await isLive(person), routes.logouts]).toEqual([false, ['administrator']]);
    const audit = { action: 'session.revoke', object: { type: 'session', id: person.session.handle } };
    expect(await routes.app.requestLines(1)).toMatchObject([{ audit }]);
  });

  it('of another tenant gets 404; the session stays open', async () => {
    const person = await routes.world.open();
    expect((await routes.end('stranger', person.session.handle)).status).toBe(404);
    expect([await isLive(person), routes.logouts]).toEqual([true, []]);
  });

  it('of core names the tenant', async () => {
    const person = await routes.world.open();
    expect((await routes.end('core', `${person.session.handle}?tenantId=${other.id}`)).status).toBe(404);
    const { tenantId, handle } = person.session;
    expect((await routes.end('core', `${handle}?tenantId=${tenantId}`)).status).toBe(200);
    expect(await isLive(person)).toBe(false);
  });

  it('gets 403 without the role, and 401 without a valid token; the session stays open', async () => {
    const person = await routes.world.open();
    expect((await routes.end('reader', person.session.handle)).status).toBe(403);
    expect((await routes.end('nonsense', person.session.handle)).status).toBe(401);
    expect(await isLive(person)).toBe(true);
  });
});

describe('a session', () => {
  it('that has ended already is 404', async () => {
    const person = await routes.world.open();
    await routes.world.sessions.end(person.session);
    expect((await routes.end('admin', person.session.handle)).status).toBe(404);
    expect((await routes.end('admin', 'a'.repeat(100))).status).toBe(404);
    expect(routes.logouts).toEqual([]);
  });

  it('that another request ends at the same time is not counted twice', async () => {
    const person = await routes.world.open();
    routes.world.sessions.end = async () => false;
    expect((await routes.end('admin', person.session.handle)).body).toEqual({ deleted: true });
    expect(routes.logouts).toEqual([]);
  });

  it('cannot be ended while the store cannot be reached: 503', async () => {
    const person = await routes.world.open();
    routes.world.sessions.end = unavailable;
    expect((await routes.end('admin', person.session.handle)).status).toBe(503);
    expect(routes.logouts).toEqual([]);
  });

  it.each(['a'.repeat(101), 'one%20two', '%20one', 'one%20'])('is not named %s: 400', async (id) => {
    const { status, body } = await routes.end('admin', id);
    const errors = [{ pointer: '/params/sessionId', detail: 'must be the id of a session' }];
    expect([status, body.errors]).toEqual([400, errors]);
  });

  it('cannot be ended with an unknown parameter: 400', async () => {
    const { status, body } = await routes.end('admin', 'one?force=true');
    expect([status, body.errors]).toMatchObject([400, [{ pointer: '/query/force' }]]);
  });
});

describe('too many requests', () => {
  it('of an address are refused before its credentials are checked', async () => {
    const check = () => Promise.reject(new Problem('too-many-requests', 'Too many requests.'));
    await routes.restart({ addressLimit: { name: 'addressLimit', check } });
    expect([(await routes.list('nonsense')).status, (await routes.end('nonsense', 'one')).status]).toEqual([429, 429]);
  });

  it('of a person are refused, and say when to try again', async () => {
    const { personLimit } = routes.options;
    const count = () => ({ isAllowed: false, remaining: 0, reset: 7 });
    await routes.restart({ personLimit: { ...personLimit, count } });
    const own = await routes.world.open();
    for (const reply of [await routes.list(own), await routes.end(own, own.session.handle)])
      expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, '7']);
    expect(await isLive(own)).toBe(true);
  });

  it('and the other refusals are documented for both routes', () => {
    const described = { description: expect.stringMatching(/./) };
    const limited = { ...described, headers: { 'Retry-After': 'Seconds' } };
    for (const route of [listSessionsRoute, deleteSessionRoute])
      expect(route(routes.options).responses).toMatchObject({
        401: described,
        403: described,
        429: limited,
        503: described,
      });
  });
});
