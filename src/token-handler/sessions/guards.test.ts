// Tests which requests the CSRF protection rejects.
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Tenant } from '../../service/auth/identity.ts';
import type { SyncGuard } from '../../service/http/http-app.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { csrfToken } from './cookies.ts';
import {
  checkCsrf,
  csrf,
  findTenant,
  liveSession,
  notEmbedded,
  notPrefetched,
  seenSession,
  sessionOf,
  sessionTenant,
  tenantHeader,
} from './guards.ts';
import type { FoundSession } from './session.ts';

const session = { handle: 'a handle', csrfSecret: 'a secret', site: 'https://app.example.org' };
const token = csrfToken(session);

const check = (method: string, headers: Record<string, string> = {}) => {
  const request = new IncomingMessage(new Socket());
  request.method = method;
  Object.assign(request.headers, headers);
  try {
    checkCsrf(request, session);
    return 'passes';
  } catch (error) {
    return (error as { status?: number }).status;
  }
};

/** Returns `passes`, or the status with which a guard rejects a GET request with these headers. */
const outcome = (guard: SyncGuard, headers: Record<string, string>) => {
  try {
    guard.check(request(headers), {} as HttpResponse);
    return 'passes';
  } catch (error) {
    return (error as { status?: number }).status;
  }
};

describe('a request for what a page of another site embeds', () => {
  const guard = notEmbedded('__Host-session');
  const embedded = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' };

  it.each(['image', 'iframe', 'script', 'empty', 'object'])('is rejected for the destination %s', (destination) => {
    expect(outcome(guard, { ...embedded, 'sec-fetch-dest': destination })).toBe(403);
  });

  it('is counted among the requests that the CSRF protection rejects', () => {
    expect(() => guard.check(request(embedded), {} as HttpResponse)).toThrow(
      expect.objectContaining({ reason: 'csrf' }),
    );
  });

  it('is rejected even if the browser sends cookies of others', () => {
    expect(outcome(guard, { ...embedded, cookie: 'theme=dark' })).toBe(403);
  });

  it.each<[string, Record<string, string>]>([
    ['a navigation', { 'sec-fetch-dest': 'document' }],
    ['a request of the same site', { 'sec-fetch-site': 'same-site' }],
    ['a request of the same origin', { 'sec-fetch-site': 'same-origin' }],
    ['a frame of the frontend to which the identity provider returns', { cookie: 'a=b; __Host-session.abc=x' }],
    ['a call with a bearer token', { authorization: 'Bearer x' }],
  ])('is not %s', (_, headers) => {
    expect(outcome(guard, { ...embedded, ...headers })).toBe('passes');
  });

  it('passes if the client sends no Fetch Metadata', () => {
    expect(outcome(guard, {})).toBe('passes');
    expect(outcome(guard, { 'sec-fetch-site': 'cross-site' })).toBe('passes');
  });
});

describe('a link that changes something', () => {
  it.each<[string, string]>([
    ['sec-purpose', 'prefetch'],
    ['sec-purpose', 'prefetch;prerender'],
    ['x-sec-purpose', 'prefetch'],
    ['purpose', 'prefetch'],
    ['x-moz', 'prefetch'],
  ])('is not loaded in advance: %s %s', (name, value) => {
    expect(outcome(notPrefetched, { [name]: value })).toBe(403);
  });

  it('is loaded when the person follows it', () => {
    expect(outcome(notPrefetched, {})).toBe('passes');
    expect(outcome(notPrefetched, { purpose: 'something else' })).toBe('passes');
  });
});

describe('CSRF protection', () => {
  it('requires no token for GET', () => {
    expect(check('GET')).toBe('passes');
    expect(check('GET', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })).toBe('passes');
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'QUERY'])(
    'requires the session’s token for %s',
    (method) => {
      expect(check(method)).toBe(403);
      expect(check(method, { 'x-xsrf-token': '' })).toBe(403);
      expect(check(method, { 'x-xsrf-token': 'undefined' })).toBe(403);
      expect(check(method, { 'x-xsrf-token': `${token} ` })).toBe(403);
      expect(check(method, { 'x-xsrf-token': token })).toBe('passes');
    },
  );

  it('rejects the token of another session or secret', () => {
    expect(check('POST', { 'x-xsrf-token': csrfToken({ ...session, handle: 'another' }) })).toBe(403);
    expect(check('POST', { 'x-xsrf-token': csrfToken({ ...session, csrfSecret: 'another' }) })).toBe(403);
  });

  it('rejects a request that the browser marks as cross-site, even with the token', () => {
    const right = { 'x-xsrf-token': token };
    expect(check('POST', { ...right, 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(() => checkCsrf(request({ 'sec-fetch-site': 'cross-site' }, 'POST'), session)).toThrow(
      expect.objectContaining({ reason: 'csrf' }),
    );
    for (const site of ['same-origin', 'same-site', 'none'])
      expect(check('POST', { ...right, 'sec-fetch-site': site })).toBe('passes');
  });

  it('rejects an Origin other than the session’s site, even with the token', () => {
    const right = { 'x-xsrf-token': token };
    expect(() => checkCsrf(request({ origin: 'null' }, 'POST'), session)).toThrow(
      expect.objectContaining({ reason: 'csrf' }),
    );
    for (const origin of ['https://evil.example', 'http://app.example.org', 'https://app.example.org:444', 'null', ''])
      expect(check('POST', { ...right, origin })).toBe(403);
    expect(check('POST', { ...right, origin: session.site })).toBe('passes');
  });

  it('rejects an Origin of the same length that differs in one character', () => {
    const { site } = session;
    for (let index = 0; index < site.length; index += 1) {
      const origin = `${site.slice(0, index)}${site[index] === 'x' ? 'y' : 'x'}${site.slice(index + 1)}`;
      expect([origin, check('POST', { 'x-xsrf-token': token, origin })]).toEqual([origin, 403]);
      expect(check('GET', { upgrade: 'websocket', origin })).toBe(403);
    }
    expect(check('POST', { 'x-xsrf-token': token, origin: site.toUpperCase() })).toBe(403);
  });

  it('rejects an upgrade from another site, and requires no token for others', () => {
    const upgrade = { upgrade: 'websocket', connection: 'Upgrade' };
    expect(check('GET', upgrade)).toBe('passes');
    expect(check('GET', { ...upgrade, origin: session.site })).toBe('passes');
    expect(check('GET', { ...upgrade, origin: 'https://evil.example' })).toBe(403);
    expect(check('GET', { ...upgrade, 'sec-fetch-site': 'cross-site' })).toBe(403);
  });
});

const request = (headers: Record<string, string | string[]> = {}, method = 'GET') => {
  const message = new IncomingMessage(new Socket());
  message.method = method;
  Object.assign(message.headers, headers);
  return message;
};
const responseOf = (live?: FoundSession) => ({ locals: live ? { session: live } : {} }) as unknown as HttpResponse;
const live = {
  session: {
    ...session,
    tenantId: 'urn:tenant:demo',
    clientId: 'app',
    user: { id: 'carla', name: 'Carla', roles: [] },
  },
} as unknown as FoundSession;

describe('a route that needs a session', () => {
  it.each([
    ['liveSession', liveSession({ ofRequest: async () => live }), liveSession({ ofRequest: async () => undefined })],
    ['seenSession', seenSession({ see: async () => live }), seenSession({ see: async () => undefined })],
  ])('%s lets only requests with a session pass, and says whose they are', async (name, withSession, without) => {
    expect(withSession).toMatchObject({ name, admits: ['session'] });
    const response = responseOf();
    await withSession.check(request(), response);
    expect(sessionOf(response)).toBe(live);
    expect(response.locals.signedIn).toEqual({ tenantId: 'urn:tenant:demo', clientId: 'app', subject: 'carla' });
    await expect(without.check(request(), responseOf())).rejects.toMatchObject({
      slug: 'unauthenticated',
      reason: 'session',
    });
  });

  it('fails if no earlier step has looked for the session', () => {
    expect(() => sessionOf(responseOf())).toThrow(Error);
    expect(sessionOf(responseOf(live))).toBe(live);
  });

  it('refuses a request without the CSRF token by its guard, too', () => {
    expect(csrf.name).toBe('csrf');
    expect(() => csrf.check(request({}, 'POST'), responseOf(live))).toThrow(
      expect.objectContaining({ status: 403, reason: 'csrf' }),
    );
    expect(() => csrf.check(request({ 'x-xsrf-token': token }, 'POST'), responseOf(live))).not.toThrow();
  });
});

describe('a domain of one tenant', () => {
  const demo = { id: 'urn:tenant:demo', name: 'Demo', realm: 'demo' } as Tenant;
  const other = { id: 'urn:tenant:other', name: 'Other Town', realm: 'other' } as Tenant;
  const tenants = {
    byId: async (id: string) => [demo, other].find((tenant) => tenant.id === id),
    byName: async (name: string) => [demo, other].find((tenant) => tenant.name === name),
  };
  const guard = sessionTenant(tenants, 'X-Tenant');
  const checked = async (headers: Record<string, string | string[]>) => {
    try {
      await guard.check(request(headers), responseOf(live));
      return 'passes';
    } catch (error) {
      expect(error).toMatchObject({ reason: 'session' });
      return (error as { slug?: string }).slug;
    }
  };

  it.each([
    ['no tenant', {}, 'passes'],
    ['an empty header', { 'x-tenant': ' ' }, 'passes'],
    ['the tenant of the session', { 'x-tenant': 'urn:tenant:demo' }, 'passes'],
    ['its name', { 'x-tenant': ' Demo ' }, 'passes'],
    ['another tenant', { 'x-tenant': 'urn:tenant:other' }, 'unauthenticated'],
    ['the name of another tenant', { 'x-tenant': 'Other Town' }, 'unauthenticated'],
    ['an unknown tenant', { 'x-tenant': 'nobody' }, 'unauthenticated'],
    ['two tenants', { 'x-tenant': ['Demo', 'Other Town'] }, 'unauthenticated'],
  ])('admits the session for %s: %s', async (_what, headers, expected) => {
    expect(guard.name).toBe('sessionTenant');
    expect(await checked(headers)).toBe(expected);
  });

  it('is found by URN or by name', async () => {
    expect(await findTenant(tenants, 'urn:tenant:other')).toBe(other);
    expect(await findTenant(tenants, 'Other Town')).toBe(other);
    expect(await findTenant(tenants, 'x urn:')).toBeUndefined();
  });

  it('is named by a header, whose lines are joined', () => {
    expect(tenantHeader(request({ 'x-tenant': ['a', ' b '] }), 'X-Tenant')).toBe('a,  b');
    expect(tenantHeader(request({ 'x-tenant': '' }), 'X-Tenant')).toBeUndefined();
  });
});
