// Tests the rules that apply to every route of the platform server.
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { platformServerRoutes } from '../../test/rules/route-tables.ts';
import { captureLog } from '../../test/support/captured-log.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { isGuarded, type Route } from '../service/http/http-app.ts';
import { ConfigError, parseConfig } from '../service/operations/config.ts';
import { configSchema } from './config.ts';

let platform: TestPlatform;

const services: Record<string, string> = {
  '/configuration': 'configuration-service',
  '/api/tenant': 'tenant-service',
  '/event': 'event-service',
  '/subscription': 'notification-service',
};
const serviceOf = (path: string) => Object.entries(services).find(([prefix]) => path.startsWith(prefix))?.[1];
const isOpen = ({ guards }: Route) => guards.some(({ name }) => name === 'anonymous');

const values: Record<string, string> = { subscriberId: 'a'.repeat(24), id: 'a'.repeat(24), revision: '0' };
const addressOf = ({ path }: Route) =>
  `${platform.url}${path.replace(/:(\w+)/g, (_whole, name: string) => values[name] ?? 'x')}`;

const routes = platformServerRoutes();
const documentation = ['/openapi.json', '/swagger/docs/v1', '/docs', '/problems/:slug'];

beforeAll(async () => {
  platform = await startTestPlatform();
});

afterAll(() => platform.close());

describe('the route table', () => {
  it('declares for every route who may call it', () => {
    expect(routes.length).toBeGreaterThan(20);
    expect(routes.filter((route) => !isGuarded(route))).toEqual([]);
    expect(routes.filter(isOpen).map(({ path }) => path)).toEqual([
      '/',
      '/health',
      '/directory/v2/namespaces/:namespace/entries',
      '/directory/v2/namespaces/:namespace/services/:service/apis/:api',
      ...documentation,
    ]);
  });

  it('responds with 401 on every guarded route to a token that is missing, expired, forged or of another issuer', async () => {
    const { access } = platform;
    for (const route of routes.filter((candidate) => !isOpen(candidate))) {
      const audience = access.urns.service(serviceOf(route.path) ?? '');
      const claims = {
        aud: [audience],
        resource_access: { [audience]: { roles: ['configuration-admin', 'subscription-admin', 'event-sender'] } },
      };
      const tokens = {
        missing: undefined,
        malformed: 'a.b.c',
        expired: await access.foreignToken({ ...claims, exp: Math.floor(Date.now() / 1000) - 60 }),
        'of an unknown realm': await access.foreignToken({ ...claims, iss: access.issuer('nobody') }),
        'of another issuer': await access.foreignToken({ ...claims, iss: 'https://elsewhere.example.org/realms/core' }),
        'signed by another key': await access.foreignToken(claims, { key: 'unknown' }),
        'not signed': await access.foreignToken(claims, { key: 'none' }),
        'signed by a shared secret': await access.foreignToken(claims, { key: 'hmac' }),
      };
      for (const [kind, token] of Object.entries(tokens)) {
        const { status, body } = await call(addressOf(route), { method: route.method.toUpperCase(), token });
        expect(status, `${kind} on ${route.method} ${route.path}`).toBe(401);
        expect(body).toMatchObject({ status: 401, errorMessage: expect.any(String) });
      }
    }
  });

  it('responds with 401 to a token for another audience, except at the configuration service', async () => {
    for (const route of routes.filter((candidate) => !isOpen(candidate))) {
      const service = serviceOf(route.path) ?? '';
      const roles = { [service]: ['configuration-admin', 'subscription-admin', 'event-sender'] };
      const token = await roleToken(platform.access, roles, {
        realm: 'demo',
        audience: [platform.access.urns.service('form-service')],
      });
      const { status } = await call(addressOf(route), { method: route.method.toUpperCase(), token });
      if (service === 'configuration-service') expect(status, route.path).not.toBe(401);
      else expect(status, route.path).toBe(401);
    }
  });
});

describe('routes that every service has', () => {
  it('GET / returns the name and links, and GET /health returns booleans', async () => {
    const { body } = await call(`${platform.url}/`);
    expect(body).toMatchObject({
      name: 'Platform server',
      _links: {
        self: { href: `${platform.url}/` },
        health: { href: `${platform.url}/health` },
        api: expect.any(Array),
      },
    });
    const health = await call(`${platform.url}/health`);
    expect(Object.values(health.body as object)).toEqual([true, true, true, true, true, true]);
  });

  it('the OpenAPI document at /openapi.json and /swagger/docs/v1 holds every route', async () => {
    const { body } = await call(`${platform.url}/swagger/docs/v1`);
    const document = body as { paths: Record<string, Record<string, unknown>> };
    for (const { method, path } of routes.filter((one) => !documentation.includes(one.path)))
      expect(document.paths[path.replace(/:(\w+)/g, '{$1}')]).toHaveProperty(method);
    expect((await call(`${platform.url}/openapi.json`)).body).toEqual(body);
    expect((await call(`${platform.url}/docs`)).text).toContain('Platform server: API');
  });

  it('an unknown address is 404, a known one with another method 405 with Allow', async () => {
    expect((await call(`${platform.url}/configuration/v2/none`)).status).toBe(404);
    const { status, headers } = await call(`${platform.url}/event/v1/events`);
    expect([status, headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
  });
});

describe('configuration of the process', () => {
  it('reports all problems together, and no value', () => {
    const env = { SMTP_URL: 'http://secret', MAIL_FROM: 'nobody', CODE_KEY: 'short-secret', ACCESS_SERVICE_URL: 'x' };
    const parse = () => parseConfig(configSchema, env);
    expect(parse).toThrow(ConfigError);
    for (const name of ['SMTP_URL', 'MAIL_FROM', 'CODE_KEY', 'ACCESS_SERVICE_URL', 'DATABASE_URL'])
      expect(parse).toThrow(name);
    expect(parse).not.toThrow(/secret/);
  });

  it('a sender with a line break is refused', () => {
    expect(() =>
      parseConfig(configSchema, { ...platform.env, MAIL_FROM: 'a@example.org\r\nBcc: b@example.org' }),
    ).toThrow('MAIL_FROM');
  });
});

/** Starts a proxy to Postgres. The test can cut the connections through it. */
async function startCable(): Promise<{ url: string; cut(): Promise<void>; mend(): Promise<void> }> {
  const target = new URL(inject('postgresUrl'));
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  const port = await listenOnLowPort(server);
  return {
    url: `127.0.0.1:${port}`,
    mend: () => listenAt(server, port),
    cut: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.resetAndDestroy();
      }),
  };
}

describe('a platform server whose database is unavailable', () => {
  it('responds with 503 problems and stays ready; afterwards everything works again without a restart, including jobs', async () => {
    const cable = await startCable();
    const logged = captureLog('info');
    const away = await startTestPlatform({ log: logged.log, databaseVia: cable.url });
    const token = await roleToken(away.access, {
      'configuration-service': ['configured-service'],
      'event-service': ['event-sender'],
      'notification-service': ['subscription-app'],
    });
    const query = `?tenantId=${encodeURIComponent(away.tenant.id)}`;
    const types = {
      t: {
        id: 't',
        name: 'T',
        channels: ['email'],
        events: [{ namespace: 'n', name: 'e', templates: { email: { subject: 'Back', body: 'x' } } }],
      },
    };
    const home = `${away.url}/configuration/v2/configuration/platform/notification-service`;
    await call(home, { method: 'PATCH', token, body: { operation: 'UPDATE', update: types } });
    const channels = [{ channel: 'email', address: 'ana@example.org' }];
    await call(`${away.url}/subscription/v1/types/t/subscriptions${query}`, {
      method: 'POST',
      token,
      body: { channels },
    });

    await cable.cut();
    const failed = await call(home, { token });
    expect(failed.status).toBe(503);
    expect(failed.body).toMatchObject({ type: 'urn:formgate:problem:unavailable' });
    expect(failed.headers.get('retry-after')).toBe('5');
    expect((await call(`${away.url}/health`)).body).toMatchObject({ db: false });
    expect((await call(`${away.metricsUrl}/readyz`)).status).toBe(200);
    expect((await call(`${away.metricsUrl}/livez`)).status).toBe(200);
    expect((await call(`${away.metricsUrl}/metrics`)).status).toBe(200);

    await cable.mend();
    await expect.poll(async () => (await call(home, { token })).status).toBe(200);
    const event = {
      namespace: 'n',
      name: 'e',
      timestamp: new Date().toISOString(),
      tenantId: away.tenant.id,
      payload: {},
    };
    await expect
      .poll(async () => (await call(`${away.url}/event/v1/events`, { method: 'POST', token, body: event })).status)
      .toBe(200);
    await away.mailbox.waitFor(({ subject }) => subject === 'Back', 30_000);
    await away.close();
    await cable.cut();
  });
});
