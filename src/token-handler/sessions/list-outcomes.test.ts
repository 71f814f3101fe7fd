// Tests what people and administrators get from the list of sessions. The sessions are in memory, and the other modules
// are scripted. Tests with an identity provider are in routes.test.ts.
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { hour, openSessions, tenantId } from '../../../test/support/memory-sessions.ts';
import { ask, demo, other, type SessionRoutes, startSessionRoutes } from '../../../test/support/session-routes.ts';
import { Problem } from '../../service/http/problem.ts';
import { csrfToken } from './cookies.ts';
import { seenSession } from './guards.ts';
import { listSessionsRoute } from './routes.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

const unavailable = () => Promise.reject(new Problem('unavailable', 'The store cannot be reached.'));
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();
const idsOf = ({ body }: { body: { id: string }[] }) => body.map(({ id }) => id);

let routes: SessionRoutes;
let sessions: Sessions;
beforeEach(async () => {
  routes = await startSessionRoutes();
  sessions = routes.world.sessions;
});
afterEach(() => routes.app.close());

describe('a person who lists sessions', () => {
  it('sees all facts of the own session and the others, but the link to log out only for the own', async () => {
    const { world } = routes;
    const begun = world.now;
    const user = { id: 'ana', name: 'Ana Ares', roles: [], email: 'ana@example.org', authenticatedBy: 'eid' };
    const own = await world.open({ session: { user, core: true }, tokens: { refreshExpiry: begun + hour / 2 } });
    world.now += 1_000;
    const second = await world.open();
    const { status, body } = await routes.list(own);
    expect(status).toBe(200);
    const common = { tenantId, clientId: 'web', name: 'Ana Ares', roles: ['role of the token'] };
    expect(body).toEqual([
      {
        ...{ ...common, tenant: { name: 'Demo', realm: 'demo' }, id: own.session.handle, email: 'ana@example.org' },
        ...{ authenticatedBy: 'eid', core: true, created: iso(begun), expiry: iso(begun + hour / 2) },
        ...{ idleExpiry: iso(begun + hour), absoluteExpiry: iso(begun + 12 * hour) },
        person: expect.stringMatching(/^[\w-]{43}$/),
        logoutUrl: 'https://app.example.org/token-handler/clients/web/logout',
      },
      {
        ...{ ...common, id: second.session.handle, email: null, authenticatedBy: null, core: false, logoutUrl: null },
        ...{ created: iso(begun + 1_000), expiry: iso(begun + 1_000 + hour) },
        ...{ idleExpiry: iso(begun + 1_000 + hour), absoluteExpiry: iso(begun + 1_000 + 12 * hour) },
      },
    ]);
    expect(listSessionsRoute(routes.options).responses[200]?.schema?.parse(body)).toEqual(body);
  });

  it('has the same id in all own sessions, and another one than other people and people of other tenants', async () => {
    const { world } = routes;
    const user = { id: 'ana', name: 'Ana', roles: [] };
    const idIn = async (session: Partial<Session>) => {
      const { body } = await routes.list(await world.open({ session: { user, ...session } }));
      return body[0]?.person;
    };
    const ids = [await idIn({}), await idIn({ clientId: 'other' }), await idIn({ user: { ...user, id: 'ben' } })];
    expect(ids[1]).toBe(ids[0]);
    expect(new Set([...ids, await idIn({ tenantId: `${tenantId}0` })]).size).toBe(3);
  });

  it('gets the session of the cookie first, and then the others, latest first', async () => {
    const { world } = routes;
    const [one, two] = await openSessions(world, 2);
    const own = await world.open();
    world.now += 1_000;
    const last = await world.open();
    expect(idsOf(await routes.list(own))).toEqual([own.session.handle, last.session.handle, two, one]);
  });

  it('gets no sessions of other people, nor of a person with the same id in another tenant', async () => {
    const { world } = routes;
    const own = await world.open();
    await world.open({ session: { user: { id: 'ben', name: 'Ben', roles: [] } } });
    await world.open({ session: { tenantId: other.id } });
    expect(idsOf(await routes.list(own))).toEqual([own.session.handle]);
  });

  it('gets the CSRF cookie again, which scripts can read', async () => {
    const own = await routes.world.open();
    const cookie = `XSRF-TOKEN=${csrfToken(own.session)}; Path=/; SameSite=Strict`;
    expect((await routes.list(own)).headers.getSetCookie()).toEqual([cookie]);
  });

  it('gets the session of the cookie although the list of the store lacks it', async () => {
    const own = await routes.world.open();
    sessions.ofUser = async () => [];
    expect(idsOf(await routes.list(own))).toEqual([own.session.handle]);
  });

  it('costs the store no further read of the session of the cookie', async () => {
    const own = await routes.world.open();
    const live = await sessions.see(own.request());
    await routes.restart({ seenSession: seenSession({ see: () => live }) });
    sessions.read = unavailable;
    expect(idsOf(await routes.list(own))).toEqual([own.session.handle]);
  });

  it('gets 401 if the session has ended since the request began, and no CSRF cookie', async () => {
    const own = await routes.world.open();
    const live = await sessions.see(own.request());
    await routes.restart({ seenSession: seenSession({ see: () => live }) });
    await sessions.end(own.session);
    const { status, headers } = await routes.list(own);
    expect([status, headers.getSetCookie()]).toEqual([401, []]);
  });

  it.each<[string, () => Promise<undefined>]>([
    ['the tenant service fails', unavailable],
    ['the tenant does not exist any more', async () => undefined],
    ['the tenant service does not respond within a second', () => new Promise(() => undefined)],
  ])('gets the list without a tenant if %s', async (_what, byId) => {
    await routes.restart({ tenants: { byId } });
    const own = await routes.world.open();
    const { status, body } = await routes.list(own);
    expect([status, body[0]?.id, body[0]?.tenant]).toEqual([200, own.session.handle, null]);
  });

  it('reads the list as often as the person may; another person has another limit', async () => {
    await routes.list(await routes.world.open());
    await routes.list(await routes.world.open({ session: { user: { id: 'ben', name: 'Ben', roles: [] } } }));
    expect(routes.limited).toEqual([`${tenantId}\nana`, `${tenantId}\nben`]);
  });

  it('does not wait for the lists of another person, but for two of their own; too many get 503', async () => {
    const { world } = routes;
    const gate = Promise.withResolvers<void>();
    onTestFinished(() => gate.resolve());
    const { ofUser } = sessions;
    let slow = 0;
    sessions.ofUser = async (...given) => {
      if (given[1] === 'ana') {
        slow += 1;
        await gate.promise;
      }
      return ofUser.apply(sessions, given);
    };
    const [ana, ben] = [
      await world.open(),
      await world.open({ session: { user: { id: 'ben', name: 'B', roles: [] } } }),
    ];
    const lists = Array.from({ length: 13 }, () => routes.list(ana));
    const refused = await Promise.race(lists);
    expect([refused.status, refused.headers.get('retry-after'), slow]).toEqual([503, '5', 2]);
    expect((await routes.list(ben)).status).toBe(200);
    gate.resolve();
    expect((await Promise.all(lists)).filter(({ status }) => status === 200)).toHaveLength(12);
  });
});

describe('an administrator who lists sessions', () => {
  it('gets those of the tenant, latest first and without the CSRF cookie or a tenant', async () => {
    const handles = await openSessions(routes.world, 3);
    await routes.world.open({ session: { tenantId: other.id } });
    const reply = await routes.list('admin');
    expect([reply.status, idsOf(reply)]).toEqual([200, handles.toReversed()]);
    expect(reply.headers.getSetCookie()).toEqual([]);
    expect(reply.body[0]).toMatchObject({ logoutUrl: null, name: 'Ana Ares' });
    expect(reply.body[0]).not.toHaveProperty('tenant');
    expect(routes.limited).toEqual(['https://id.example.org/realms/demo\nadmin']);
  });

  it('reads pages of a size of their choice, and 100 sessions by default', async () => {
    const asked: unknown[] = [];
    const { ofTenant } = sessions;
    sessions.ofTenant = (...given) => {
      asked.push(given);
      return ofTenant.apply(sessions, given);
    };
    const [first, second, third] = await openSessions(routes.world, 3);
    expect(idsOf(await routes.list('admin', '?top=2'))).toEqual([third, second]);
    expect(idsOf(await routes.list('admin', `?top=100&after=${second}`))).toEqual([first]);
    expect(idsOf(await routes.list('admin', '?top=1'))).toEqual([third]);
    await routes.list('admin');
    expect(asked.map((given) => (given as unknown[]).slice(0, 2))).toEqual(
      [2, 100, 1, 100].map((top) => [demo.id, top]),
    );
  });

  it('of core names the tenant', async () => {
    const { session } = await routes.world.open({ session: { tenantId: other.id } });
    expect(idsOf(await routes.list('core', `?tenantId=${other.id}`))).toEqual([session.handle]);
    expect((await routes.list('core')).status).toBe(400);
  });

  it.each([
    ['?top=0', 'top'],
    ['?top=101', 'top'],
    ['?top=1.5', 'top'],
    ['?top=x', 'top'],
    [`?after=${'a'.repeat(101)}`, 'after'],
    ['?skip=1', 'skip'],
  ])('gets 400 with the name of the field for %s', async (query, field) => {
    const { status, body } = await routes.list('admin', query);
    expect([status, body.errors]).toMatchObject([400, [{ pointer: `/query/${field}` }]]);
  });

  it('gets 400 for a page after an unknown session, and learns what to do', async () => {
    const { status, body } = await routes.list('admin', `?after=${'a'.repeat(100)}`);
    const detail = expect.stringMatching(/open, or ended within the last hour\. Read the list from its beginning/);
    expect([status, body.errors]).toEqual([400, [{ pointer: '/query/after', detail }]]);
  });

  it('gets 403 without the role, and 401 without a valid token, even with a session', async () => {
    const own = await routes.world.open();
    expect((await routes.list(own, '', { authorization: 'Bearer reader' })).status).toBe(403);
    expect((await routes.list(own, '', { authorization: 'Bearer nonsense' })).status).toBe(401);
  });
});

describe('the list of sessions', () => {
  it('gets 401 without a session, and says how to authenticate', async () => {
    const { status, headers } = await ask(`${routes.app.url}/token-handler/v1/sessions`);
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it('is read with the session if a proxy asks the browser for a password', async () => {
    const own = await routes.world.open();
    expect((await routes.list(own, '', { authorization: 'Basic YTpi' })).status).toBe(200);
  });

  it('gets 401 on the domain of another tenant', async () => {
    const own = await routes.world.open();
    expect((await routes.list(own, '', { 'x-platform-tenant': other.id })).status).toBe(401);
    expect((await routes.list(own, '', { 'x-platform-tenant': demo.id })).status).toBe(200);
  });

  it('gets 503 while the store cannot be reached', async () => {
    const own = await routes.world.open();
    Object.assign(sessions, { ofUser: unavailable, ofTenant: unavailable });
    expect([(await routes.list(own)).status, (await routes.list('admin')).status]).toEqual([503, 503]);
  });

  it('cannot be requested with HEAD, because it sets a cookie', async () => {
    const own = await routes.world.open();
    const headers = { cookie: own.request().headers.cookie ?? '' };
    const { status } = await fetch(`${routes.app.url}/token-handler/v1/sessions`, { method: 'HEAD', headers });
    expect(status).toBe(405);
  });

  it('is audited if an administrator reads it, also if it is refused, with the ids of the sessions', async () => {
    const { session } = await routes.world.open();
    await routes.list('admin');
    const actor = { kind: 'account', id: 'admin' };
    const object = { type: 'session', ids: expect.arrayContaining([session.handle]) };
    const audit = { ...{ action: 'session.list', actor, object }, outcome: 'succeeded' };
    await routes.list('reader');
    const refused = { action: 'session.list', object: { type: 'session' }, outcome: 'refused' };
    expect(await routes.app.requestLines(2)).toMatchObject([{ audit }, { audit: refused }]);
  });

  it('is not audited if people read their own', async () => {
    await routes.list(await routes.world.open());
    expect((await routes.app.requestLines(1))[0]).not.toHaveProperty('audit');
  });
});
