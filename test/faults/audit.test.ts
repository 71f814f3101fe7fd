// Calls every route that changes something, in every process, and checks which caller the audit events name. Every
// audit event is also checked against docs/audit-event.schema.json. Every log line is searched for values that must not
// be logged (test/support/log-checks.ts).
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Route } from '../../src/service/http/http-app.ts';
import type { AuditEvent } from '../../src/service/operations/audit.ts';
import { auditOf, needsAudit } from '../rules/audit-reference.ts';
import { routedProcesses } from '../rules/route-tables.ts';
import { applySettings } from '../support/apply.ts';
import { captureLog } from '../support/captured-log.ts';
import { draft, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { call, roleToken } from '../support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../support/sessions.ts';

const platformLog = captureLog('info');
let world: FormWorld;
let forms: FormReplica;
let site: SessionWorld;
let token: string;
beforeAll(async () => {
  world = await startFormWorld({ log: platformLog });
  [forms, site] = await Promise.all([
    world.start({ env: applySettings }),
    startSessionWorld({ store: 'redis', platform: world.platform }),
  ]);
  token = await roleToken(
    world.platform.access,
    {
      'form-service': ['form-admin', 'intake-application'],
      'token-handler': ['token-handler-admin'],
      'configuration-service': ['configuration-admin', 'configuration-reader', 'configured-service'],
      'event-service': ['event-sender'],
      'notification-service': ['subscription-admin', 'subscription-app'],
    },
    { realm: 'demo', realmRoles: ['applicant'] },
  );
});
afterAll(async () => {
  await site?.close();
  await world?.close();
});

const services = {
  'Form service': () => ({ url: forms.url, text: forms.logText() }),
  'Token handler': () => ({ url: site.site, text: site.handler.log.text() }),
  'Platform server': () => ({ url: world.platform.url, text: platformLog.text() }),
};
type Title = keyof typeof services;

interface Line {
  requestId: string;
  audit?: AuditEvent;
  formId?: string;
  clientId?: string;
  tenant?: string;
}

/** Returns the log line of a request; waits until it is written. */
async function lineOf(title: Title, requestId: string): Promise<Line> {
  const find = () => {
    const text = services[title]()
      .text.split('\n')
      .filter((line) => line.includes(requestId));
    return text.map((line) => JSON.parse(line) as Line & { msg: string }).find(({ msg }) => msg.startsWith('request'));
  };
  await expect.poll(find).toBeDefined();
  return find() as Line;
}

/** Bodies for routes whose effect depends on the body. */
const bodies: [RegExp, unknown][] = [
  [/\/form\/v1\/forms\/:formId$/, { operation: 'hold', reason: 'canary-reason' }],
  [/\/configuration\/v2\/.*:name$/, { operation: 'CREATE-REVISION' }],
  [/\/subscribers\/:subscriberId$/, { operation: 'send-code', channel: 'email', address: 'canary@example.org' }],
];
const text = 'code\ncanary';

async function send(title: Title, route: Route, headers: Record<string, string>) {
  const id = randomBytes(12).toString('hex');
  const values: Record<string, string> = { name: 'permit', namespace: 'form-service', tenant: 'demo', clientId: 'web' };
  const named = (name: string) => values[name] ?? (name === 'subscriberId' ? id : randomUUID());
  const path = route.path.replaceAll(/[:*](\w+)/g, (_, name: string) => named(name));
  const json = bodies.find(([pattern]) => pattern.test(route.path) && route.method === 'post')?.[1] ?? {};
  const hasBody = route.body !== undefined;
  const type = route.bodyType ?? 'application/json';
  const response = await fetch(`${services[title]().url}${path}?keyField=code`, {
    method: route.method === 'all' ? 'POST' : route.method.toUpperCase(),
    redirect: 'manual',
    headers: { ...headers, ...(hasBody && { 'content-type': type }) },
    ...(hasBody && { body: route.bodyType ? text : JSON.stringify(json) }),
  });
  await response.arrayBuffer();
  return { status: response.status, path, requestId: response.headers.get('x-request-id') ?? '' };
}

const changing = routedProcesses.flatMap(({ title, routes }) =>
  routes.filter(needsAudit).map((route) => ({ title: title as Title, route, audit: auditOf(route) })),
);
const takesBearer = ({ guards }: Route) => guards.some(({ admits }) => admits?.includes('bearer'));

describe('a request that changes something', () => {
  it('has an audit event with the account, for every route that takes a bearer token', async () => {
    const audited = changing.filter(({ route, audit }) => takesBearer(route) && Array.isArray(audit));
    expect(audited.length).toBeGreaterThan(25);
    for (const { title, route, audit } of audited) {
      const { status, path, requestId } = await send(title, route, { authorization: `Bearer ${token}` });
      const line = await lineOf(title, requestId);
      const { action, actor, object, outcome } = line.audit ?? {};
      expect([route.path, status, (audit as string[]).includes(action ?? '')]).toEqual([route.path, status, true]);
      expect([route.path, status]).not.toEqual([route.path, 401]);
      expect([route.path, actor]).toEqual([
        route.path,
        { kind: 'account', id: expect.stringMatching(/^[\w-]+$/), realm: 'demo', clientId: expect.any(String) },
      ]);
      expect([route.path, outcome]).toEqual([
        route.path,
        status < 400 ? 'succeeded' : status < 500 ? 'refused' : 'failed',
      ]);
      if (object?.id !== undefined && route.path.includes(':'))
        for (const part of object.id.split('/')) expect(path).toContain(part);
    }
  });

  it('has no event if a guard refuses an unknown caller, or if its route needs none', async () => {
    for (const { title, route, audit } of changing) {
      const isOpen = route.guards.some(({ admits }) => admits?.includes('none'));
      if (isOpen && Array.isArray(audit)) continue;
      const { requestId } = await send(title, route, {});
      const line = await lineOf(title, requestId);
      expect([route.path, line.audit]).toEqual([route.path, undefined]);
    }
  });
});

describe('the events of a form', () => {
  it('name it, its tenant and the account, from its creation to its deletion', async () => {
    const tenant = world.platform.tenant.id;
    const id = await draft(forms, `canary-${randomUUID()}@example.org`);
    const ask = (method: string, path: string, body?: unknown, as: 'intake' | 'admin' = 'intake') =>
      forms.ask(method, path, { as, ...(body !== undefined && { body }) });
    await ask('PUT', `/${id}/data`, { data: { name: 'canary' }, files: {} });
    await ask('POST', `/${id}`, { operation: 'submit' });
    await ask('POST', `/${id}`, { operation: 'to-draft' }, 'admin');
    await ask('DELETE', `/${id}`, undefined, 'admin');
    await ask('DELETE', `/${randomUUID()}`, undefined, 'admin');
    const lines = () =>
      forms
        .logText()
        .split('\n')
        .filter((line) => line.includes('"audit"') && line.includes(id))
        .map((line) => JSON.parse(line) as Required<Line>);
    await expect.poll(() => lines().length).toBe(5);
    expect(lines().map(({ audit: { action, outcome } }) => `${action} ${outcome}`)).toEqual([
      'form.create succeeded',
      'form.save succeeded',
      'form.submit succeeded',
      'form.to-draft succeeded',
      'form.delete succeeded',
    ]);
    for (const { audit, formId } of lines()) {
      expect([audit.object, formId]).toEqual([{ type: 'form', id }, id]);
      expect(audit.tenant).toBe(tenant);
    }
  });

  it('name it if a guard or the body is refused', async () => {
    const id = randomUUID();
    for (const [method, path, headers, status] of [
      ['DELETE', `/${id}?tenantId=urn:x`, {}, 403],
      ['PUT', `/${id}/data`, { 'content-type': 'text/plain' }, 415],
    ] as const) {
      const request = { method, headers: { authorization: `Bearer ${token}`, ...headers } };
      const response = await fetch(`${forms.url}/form/v1/forms${path}`, {
        ...request,
        ...(method === 'PUT' && { body: 'x' }),
      });
      expect(response.status).toBe(status);
      const { audit, formId } = await lineOf('Form service', response.headers.get('x-request-id') ?? '');
      expect(audit).toMatchObject({ object: { type: 'form', id }, outcome: 'refused' });
      expect(formId).toBe(id);
    }
  });
});

describe('the events of a session', () => {
  const events = (handle: string) =>
    site.handler.log
      .lines()
      .map(({ audit }) => audit as AuditEvent | undefined)
      .filter((audit) => audit !== undefined)
      .filter((audit) => audit.object.id === handle);

  it('name the person who signs in, and who ends it', async () => {
    const { browser, handle } = await site.signIn();
    const other = await site.signIn();
    const url = `${site.site}/token-handler/v1/sessions/${other.handle}`;
    const headers = { authorization: `Bearer ${token}` };
    expect((await call(url, { method: 'DELETE', headers })).status).toBe(200);
    expect((await browser.request(site.clientUrl('logout'))).status).toBe(302);
    await expect.poll(() => events(handle)).toHaveLength(2);
    const person = { kind: 'person', id: expect.any(String), clientId: site.clientId };
    const about = { tenant: world.platform.tenant.id, object: { type: 'session', id: handle }, outcome: 'succeeded' };
    expect(events(handle)).toEqual([
      { action: 'session.sign-in', actor: person, ...about },
      { action: 'session.sign-out', actor: person, ...about },
    ]);
    expect(events(other.handle)[1]).toMatchObject({ action: 'session.revoke', actor: { kind: 'account' } });
  });

  it('end with its replacement if its browser signs in again', async () => {
    const { browser, handle } = await site.signIn();
    await site.signIn(browser);
    await expect
      .poll(() => events(handle).map(({ action }) => action))
      .toEqual(['session.sign-in', 'session.replaced']);
  });

  it('are refused for a callback of an attempt that the browser did not start', async () => {
    const url = site.clientUrl('callback', { state: 'unknown', code: 'canary' });
    const response = await fetch(url, { redirect: 'manual' });
    const line = await lineOf('Token handler', response.headers.get('x-request-id') ?? '');
    const refused = { action: 'session.sign-in', actor: { kind: 'browser' }, outcome: 'refused' };
    expect(line).toMatchObject({ clientId: 'web', audit: refused });
    expect(line.audit?.object).toEqual({ type: 'session' });
  });

  it('do not exist for a logout without a session', async () => {
    const response = await fetch(site.clientUrl('logout'), { redirect: 'manual' });
    const line = await lineOf('Token handler', response.headers.get('x-request-id') ?? '');
    expect(line.audit).toBeUndefined();
  });
});
