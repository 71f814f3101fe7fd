// Tests what the route guards bearer, role and tenant decide, without a server. A scripted verifier returns the caller,
// either synchronously or as a promise.
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { parse } from 'node:querystring';
import type { Request, Response } from 'express';
import { describe, expect, it } from 'vitest';
import { anonymous, type Guard } from '../http/http-app.ts';
import { Problem } from '../http/problem.ts';
import { bearer, callTenant, callTenantOrAll, ifBearer, role } from './bearer-guards.ts';
import type { Caller, Tenant } from './identity.ts';

const demo: Tenant = { id: 'urn:example:tenants/demo', name: 'Demo', realm: 'demo' };
const other: Tenant = { id: 'urn:example:tenants/other', name: 'Other', realm: 'other' };
/** Tenant ids that the guards looked up. */
let lookups: string[] = [];
const tenants = {
  async byId(id: string) {
    lookups.push(id);
    return [demo, other].find((tenant) => tenant.id === id);
  },
};

function callerIn(tenant: Tenant | undefined, ...roles: string[]): Caller {
  const realm = tenant?.realm ?? 'core';
  const common = { subject: 'alice', name: 'Alice', issuer: `https://a.example/realms/${realm}`, clientId: 'app' };
  return { ...common, realm, isCore: !tenant, ...(tenant && { tenant }), roles: new Set(roles) };
}

function exchange(url = '/', caller?: Caller, authorization?: string) {
  const incoming = Object.assign(new IncomingMessage(new Socket()), { url, query: parse(url.split('?')[1] ?? '') });
  if (authorization !== undefined) incoming.headers.authorization = authorization;
  const response = Object.assign(new ServerResponse(incoming), { locals: { caller } }) as unknown as Response;
  return { request: incoming as unknown as Request, response };
}
type Exchange = ReturnType<typeof exchange>;

async function outcome(guard: Guard, { request, response }: Exchange): Promise<unknown> {
  try {
    await guard.check(request, response);
    return 'passed';
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { status: error.status, detail: error.detail, errors: error.errors };
  }
}

describe('the guard bearer', () => {
  it('admits calls with bearer tokens', () => {
    const guard = bearer({ verify: () => callerIn(demo) }, 'any');
    expect([guard.name, guard.admits]).toEqual(['bearer', ['bearer']]);
  });

  it('keeps the caller of the token for the audiences of the route, without waiting for a cached token', () => {
    const caller = callerIn(demo);
    const asked: unknown[] = [];
    const verify = (...given: unknown[]) => {
      asked.push(given);
      return caller;
    };
    const guard = bearer({ verify }, ['form-service']);
    const { request, response } = exchange('/', undefined, 'Bearer x');
    expect(guard.check(request, response)).toBeUndefined();
    expect([asked, response.locals.caller]).toEqual([[['Bearer x', ['form-service']]], caller]);
  });

  it('waits for a token that has to be verified', async () => {
    const caller = callerIn(demo);
    const { request, response } = exchange();
    const checked = bearer({ verify: async () => caller }, 'any').check(request, response);
    expect(response.locals.caller).toBeUndefined();
    await checked;
    expect(response.locals.caller).toBe(caller);
  });

  it('refuses a token that the verifier refuses', async () => {
    const refused = new Problem('unauthenticated', 'no');
    const called = exchange();
    expect(await outcome(bearer({ verify: () => Promise.reject(refused) }, 'any'), called)).toMatchObject({
      status: 401,
    });
    expect(called.response.locals.caller).toBeUndefined();
  });
});

describe('the guard role', () => {
  it('names its roles', () => {
    expect([role('form-admin').name, role('a', 'b').name]).toEqual(['role(form-admin)', 'role(a, b)']);
    expect(role('a').admits).toBeUndefined();
  });

  it('passes a caller with one of the roles', async () => {
    for (const roles of [['a'], ['b'], ['x', 'b']])
      expect(await outcome(role('a', 'b'), exchange('/', callerIn(demo, ...roles)))).toBe('passed');
  });

  it('refuses a caller without any of them, and says which are needed', async () => {
    for (const roles of [[], ['c'], ['A'], ['a ', 'ab']])
      expect(await outcome(role('a', 'b'), exchange('/', callerIn(demo, ...roles)))).toMatchObject({
        status: 403,
        detail: 'This operation requires one of the roles a, b.',
      });
    expect(await outcome(role('a'), exchange('/', callerIn(demo)))).toMatchObject({
      detail: 'This operation requires the role a.',
    });
    expect(await outcome(role(), exchange('/', callerIn(demo, 'a')))).toMatchObject({ status: 403 });
  });
});

describe.each([
  ['tenant', callTenant(tenants)],
  ['tenantOrAll', callTenantOrAll(tenants)],
])('the guard %s', (name, guard) => {
  const query = (id: string) => `/?tenantId=${encodeURIComponent(id)}`;

  it('has its name, and admits no callers by itself', () => {
    expect([guard.name, guard.admits]).toEqual([name, undefined]);
  });

  it.each(['/', '/?other=1', '/?tenantId=', query(demo.id)])(
    'gives a caller of a tenant this tenant, without a lookup: %s',
    (url) => {
      lookups = [];
      const { request, response } = exchange(url, callerIn(demo));
      expect(guard.check(request, response)).toBeUndefined();
      expect([response.locals.tenant, lookups]).toEqual([demo, []]);
    },
  );

  it.each([query(other.id), query('nowhere'), query(`${demo.id}/`)])(
    'refuses a caller of a tenant that names another, without a lookup: %s',
    async (url) => {
      lookups = [];
      const called = exchange(url, callerIn(demo));
      expect(await outcome(guard, called)).toMatchObject({
        status: 403,
        detail: 'The caller belongs to another tenant.',
      });
      expect([called.response.locals.tenant, lookups]).toEqual([undefined, []]);
    },
  );

  it('gives a core caller the tenant that the call names', async () => {
    const called = exchange(query(other.id), callerIn(undefined));
    expect(await outcome(guard, called)).toBe('passed');
    expect(called.response.locals.tenant).toBe(other);
  });

  it('refuses a core caller that names an unknown tenant', async () => {
    const called = exchange(query('nowhere'), callerIn(undefined));
    expect(await outcome(guard, called)).toMatchObject({
      status: 400,
      errors: [{ pointer: '/query/tenantId', detail: 'is not the id of a tenant' }],
    });
    expect(called.response.locals.tenant).toBeUndefined();
  });

  it('refuses a tenant that is named twice', async () => {
    for (const caller of [callerIn(demo), callerIn(undefined)])
      expect(await outcome(guard, exchange(`${query(demo.id)}&tenantId=${demo.id}`, caller))).toMatchObject({
        status: 400,
        errors: [{ pointer: '/query/tenantId', detail: 'must be given once' }],
      });
  });
});

describe('a core caller that names no tenant', () => {
  it.each(['/', '/?tenantId='])('calls for all tenants only where that is allowed: %s', async (url) => {
    const called = exchange(url, callerIn(undefined));
    expect(await outcome(callTenantOrAll(tenants), called)).toBe('passed');
    expect(called.response.locals.tenant).toBeUndefined();
    expect(await outcome(callTenant(tenants), called)).toMatchObject({
      status: 400,
      errors: [{ pointer: '/query/tenantId', detail: 'is required for core users' }],
    });
  });
});

describe('the guard ifBearer', () => {
  /** Names of the guards that ran, in order. */
  let ran: string[] = [];
  const step = (name: string, slug?: 'unauthenticated' | 'forbidden'): Guard => ({
    name,
    admits: ['bearer'],
    async check() {
      ran.push(name);
      if (slug) throw new Problem(slug, name);
    },
  });
  const call = async (guard: Guard, authorization?: string) => {
    ran = [];
    const called = exchange('/', undefined, authorization);
    const result = await outcome(guard, called);
    return { result, ran, challenge: called.response.getHeader('WWW-Authenticate') };
  };

  it('has the names and credentials of both lists', () => {
    const plain: Guard = { name: 'plain', check: () => undefined };
    const guard = ifBearer([step('a'), plain], [anonymous, step('c')]);
    expect([guard.name, guard.admits]).toEqual(['ifBearer(a, plain; else anonymous, c)', ['bearer', 'none']]);
  });

  it('runs the first list in order for a call with an Authorization header, even an empty one', async () => {
    const guard = ifBearer([step('a'), step('b')], [step('c'), step('d')]);
    expect(await call(guard, 'Bearer x')).toMatchObject({ result: 'passed', ran: ['a', 'b'] });
    expect(await call(guard, '')).toMatchObject({ ran: ['a', 'b'] });
    expect(await call(guard)).toMatchObject({ result: 'passed', ran: ['c', 'd'] });
  });

  it('runs the second list for a call with another scheme, if the guard ignores such schemes', async () => {
    const guard = ifBearer([step('a')], [step('c')], { ignoresOtherSchemes: true });
    for (const authorization of ['Basic YTpi', 'Bearers x', '', 'x Bearer y', undefined])
      expect(await call(guard, authorization)).toMatchObject({ result: 'passed', ran: ['c'] });
    for (const authorization of ['Bearer x', 'bearer x', 'BEARER', 'Bearer\tx'])
      expect(await call(guard, authorization)).toMatchObject({ ran: ['a'] });
  });

  it('stops at the first guard that refuses', async () => {
    const guard = ifBearer([step('a', 'forbidden'), step('b')], [step('c', 'forbidden'), step('d')]);
    expect(await call(guard, 'Bearer x')).toMatchObject({ result: { status: 403, detail: 'a' }, ran: ['a'] });
    expect(await call(guard)).toEqual({
      result: expect.objectContaining({ status: 403, detail: 'c' }),
      ran: ['c'],
      challenge: undefined,
    });
  });

  it('says how to authenticate if the second list asks for authentication', async () => {
    const guard = ifBearer([step('a', 'unauthenticated')], [step('c', 'unauthenticated')]);
    expect(await call(guard)).toMatchObject({ result: { status: 401, detail: 'c' }, challenge: 'Bearer' });
    // The guard `bearer` sets its own challenge, so `ifBearer` sets none.
    expect((await call(guard, 'Bearer x')).challenge).toBeUndefined();
  });

  it('passes on an error that is no refusal', async () => {
    const broken: Guard = { name: 'broken', admits: ['none'], check: () => Promise.reject(new Error('down')) };
    await expect(call(ifBearer([step('a')], [broken]))).rejects.toThrow('down');
  });

  it('cannot be made of a list that admits no callers', () => {
    const plain: Guard = { name: 'plain', check: () => undefined };
    expect(() => ifBearer([plain], [anonymous])).toThrow('no guard admits callers among plain');
    expect(() => ifBearer([anonymous], [plain])).toThrow('no guard admits callers among plain');
  });
});
