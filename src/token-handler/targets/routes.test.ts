// Tests how proxied requests are forwarded, and their status codes, with a real identity provider, Redis and upstream.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { trickPaths } from '../../../test/support/path-tricks.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { basePath, startTargetWorld, type TargetWorld, targetUrn } from '../../../test/support/targets.ts';
import { answerWhenRead } from '../../../test/support/upstream.ts';

let world: TargetWorld;

beforeAll(async () => {
  world = await startTargetWorld({
    store: 'redis',
    env: { TARGET_SESSION_LIMIT: '100000', TARGET_ADDRESS_LIMIT: '100000' },
    furtherClients: {
      other: { targets: [{ id: 'theirs', upstream: targetUrn('api:v1') }] },
      open: { targets: [{ id: 'opened', upstream: targetUrn('api:v1') }], UPSTREAM_ALLOWED_DOMAINS: '127.0.0.1' },
    },
  });
});
afterAll(() => world.close());
beforeEach(() => {
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
});

const raw = (lines: string[], body = '') =>
  sendRaw(Number(new URL(world.site).port), `${lines.join('\r\n')}\r\n\r\n${body}`);
const host = () => `Host: ${new URL(world.site).host}`;

describe('a proxied request', () => {
  it('reaches the upstream with the access token of the session', async () => {
    expect((await world.send()).status).toBe(200);
    const { authorization = '' } = world.upstream.last().headers;
    const claims = JSON.parse(Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString());
    expect(claims).toMatchObject({
      email: 'alice@example.com',
      iss: `${world.handler.platform.access.url}/realms/demo`,
    });
  });

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY'])(
    'may have the method %s',
    async (method) => {
      expect((await world.send({ method })).status).toBe(200);
      expect(world.upstream.last().method).toBe(method);
    },
  );

  it('gets 405 for the method TRACE, whose response would reveal the access token', async () => {
    const { status, headers } = await world.send({ method: 'TRACE' });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']);
    expect(world.upstream.seen).toEqual([]);
  });

  it('is also served under the path without a version', async () => {
    expect((await world.send({ target: '/token-handler/targets/api/a/b?c' })).status).toBe(200);
    expect(world.upstream.last().target).toBe(`${basePath}/a/b?c`);
  });

  it('finds a target whose id contains spaces, however the id is percent-encoded', async () => {
    for (const id of ['My%20target_1', '%4dy%20target%5F1'])
      expect((await world.send({ target: `/token-handler/v1/targets/${id}/a%20b` })).status).toBe(200);
    expect(world.upstream.seen.map(({ target }) => target)).toEqual([`${basePath}/a%20b`, `${basePath}/a%20b`]);
  });

  it('reaches the base path itself, with or without a slash at the end', async () => {
    for (const path of ['', '/', '?a', '/?a']) await world.send({ path });
    await world.send({ target: '/token-handler/v1/targets/root' });
    await world.send({ target: '/token-handler/v1/targets/root/x' });
    expect(world.upstream.seen.map(({ target }) => target)).toEqual([
      basePath,
      `${basePath}/`,
      `${basePath}?a`,
      `${basePath}/?a`,
      '/',
      '/x',
    ]);
  });
});

describe('a proxied request is refused', () => {
  it('with 401 if there is no session, as a JSON problem and never by a redirect', async () => {
    for (const headers of [{}, { Cookie: 'formgate_session=s%3Aforged.x' }, { Authorization: 'Bearer x' }]) {
      const sent = await world.send({ as: null, headers });
      expect([sent.status, sent.problem, sent.headers['content-type']]).toEqual([
        401,
        'unauthenticated',
        'application/problem+json; charset=utf-8',
      ]);
      expect(sent.headers.location).toBeUndefined();
    }
    expect(world.upstream.seen).toEqual([]);
  });

  it('with 403 for every method but GET if the CSRF header is missing or wrong', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PROPFIND']) {
      expect((await world.send({ method, unprotected: true })).status).toBe(403);
      const headers = { 'X-XSRF-TOKEN': `${world.person.csrf.slice(0, -1)}x` };
      expect((await world.send({ method, headers })).status).toBe(403);
    }
    expect((await world.send({ unprotected: true })).status).toBe(200);
    expect(world.upstream.seen).toHaveLength(1);
  });

  it('with 403 for every method but GET if it comes from another site or origin, even with the CSRF header', async () => {
    for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'https://evil.example' }, { Origin: 'null' }])
      expect((await world.send({ method: 'POST', headers })).status).toBe(403);
    expect((await world.send({ method: 'POST', headers: { Origin: world.site } })).status).toBe(200);
    expect((await world.send({ headers: { Origin: 'https://evil.example' } })).status).toBe(200);
  });

  it('with 401 if the tenant header names another tenant than the session’s', async () => {
    for (const tenant of ['Other Town', 'other-town', 'nobody', world.handler.platform.otherTenant.id])
      expect((await world.send({ headers: { 'X-PLATFORM-TENANT': tenant } })).status).toBe(401);
    for (const tenant of ['Demo', 'demo', world.handler.tenant.id])
      expect((await world.send({ headers: { 'X-PLATFORM-TENANT': tenant } })).status).toBe(200);
  });

  it('with 404 if the client of the session has no such target', async () => {
    for (const id of ['unknown', 'API', 'api%20', '', 'form-service'])
      expect((await world.send({ target: `/token-handler/v1/targets/${id}/x` })).problem).toBe('not-found');
  });

  it('with 502 upstream-unresolved if the directory has no entry for the upstream', async () => {
    const { status, problem } = await world.send({ target: '/token-handler/v1/targets/nowhere/x' });
    expect([status, problem]).toEqual([502, 'upstream-unresolved']);
  });

  it('with 403 upstream-not-allowed if the directory’s URL is not http or https, or contains credentials', async () => {
    const { hostname, port } = new URL(world.upstream.url);
    for (const url of [`http://user:secret@${hostname}:${port}`, 'ftp://127.0.0.1/', 'file:///etc']) {
      await world.direct('other', url);
      const { status, problem, text } = await world.send({ target: '/token-handler/v1/targets/other/x' });
      expect([status, problem]).toEqual([403, 'upstream-not-allowed']);
      expect(text).not.toContain('secret');
    }
    expect(world.upstream.seen).toEqual([]);
  });

  it('with 502 if the upstream cannot be reached', async () => {
    const { status, problem } = await world.send({ target: '/token-handler/v1/targets/dead/x' });
    expect([status, problem]).toEqual([502, 'dependency-failed']);
  });

  it('by the first check that fails, in the order session, CSRF token, target, path, upstream', async () => {
    const at = (id: string, path = '/x') => `/token-handler/v1/targets/${id}${path}`;
    const problem = async (sending: Parameters<TargetWorld['send']>[0]) => (await world.send(sending)).status;
    expect(await problem({ method: 'POST', as: null, target: at('unknown', '/..') })).toBe(401);
    expect(await problem({ method: 'POST', unprotected: true, target: at('unknown', '/..') })).toBe(403);
    expect(await problem({ method: 'POST', target: at('unknown', '/..') })).toBe(404);
    expect(await problem({ method: 'POST', target: at('nowhere', '/..') })).toBe(400);
    expect(await problem({ method: 'POST', target: at('nowhere') })).toBe(502);
  });
});

describe('the path of a proxied request', () => {
  it('is forwarded byte for byte, with its query', async () => {
    const paths = ['/a/b?c=d%2Fe&&f=%zz/../g?h', '/a//b/', '/%C3%A9/100%25', '/a;v=1/b', '/...', '/x?q=a+b&~'];
    for (const path of paths) {
      expect((await world.send({ path })).status).toBe(200);
      expect(world.upstream.last().target).toBe(`${basePath}${path}`);
    }
  });

  it('is refused with 400 invalid-path if it is hostile, and nothing reaches the upstream', async () => {
    // Leaves out paths that Node's client does not send, and paths that Node's server rejects itself.
    const sendable = trickPaths.filter((path) => /^[\x21-\x7e]+$/.test(path));
    for (const path of sendable) {
      const { status, problem } = await world.send({ path });
      expect([path, status, problem]).toEqual([path, 400, 'invalid-path']);
    }
    expect(world.upstream.seen).toEqual([]);
  });

  it('is refused with 400 if it contains control characters, line breaks or other bytes that paths cannot have', async () => {
    for (const path of trickPaths.filter((one) => !/^[\x21-\x7e]+$/.test(one))) {
      const { text } = await sendRaw(
        Number(new URL(world.site).port),
        Buffer.from(
          `GET /token-handler/v1/targets/api${path} HTTP/1.1\r\n${host()}\r\nCookie: ${world.person.cookie}\r\nConnection: close\r\n\r\n`,
          'latin1',
        ),
      );
      expect([path, text.slice(9, 12)]).toEqual([path, '400']);
    }
    expect(world.upstream.seen).toEqual([]);
  });

  it('is refused with 400 in a request line in absolute form, whatever its host', async () => {
    for (const origin of ['http://evil.example', world.site, 'https://user@evil.example:1']) {
      const { status } = await raw([
        `GET ${origin}/token-handler/v1/targets/api/x HTTP/1.1`,
        host(),
        `Cookie: ${world.person.cookie}`,
        'Connection: close',
      ]);
      expect(status).toBe(400);
    }
    expect(world.upstream.seen).toEqual([]);
  });

  it('leads to no target (404) if its prefix is spelled differently', async () => {
    const prefixes = [
      '//token-handler/v1/targets',
      '/token-handler/v1/../v1/targets',
      '/token-handler//v1/targets',
      '/Token-Handler/v1/targets',
      '/token-handler/v1/%74argets',
    ];
    for (const prefix of prefixes) expect((await world.send({ target: `${prefix}/api/x` })).status).toBe(404);
    expect(world.upstream.seen).toEqual([]);
  });
});

describe('UPSTREAM_ALLOWED_DOMAINS', () => {
  const warnings = () =>
    world.handler.log.lines().filter(({ msg }) => String(msg).includes('UPSTREAM_ALLOWED_DOMAINS'));

  it('causes a warning at startup if it is not set', () => {
    expect(warnings()).toMatchObject([{ level: 'warn' }]);
  });

  it('rejects upstreams at other hosts with 403 upstream-not-allowed, except in the platform namespace', async () => {
    const { port } = world.upstream;
    await world.direct('other', `http://localhost:${port}/other`);
    const env = { UPSTREAM_ALLOWED_DOMAINS: `localhost:${port}, *.example.ca` };
    const before = warnings().length;
    const replica = await world.replica(env);
    const { url } = replica;
    try {
      expect(warnings()).toHaveLength(before);
      const refused = await world.send({ url });
      expect([refused.status, refused.problem]).toEqual([403, 'upstream-not-allowed']);
      expect(world.upstream.seen).toEqual([]);
      expect((await world.send({ url, target: '/token-handler/v1/targets/other/x' })).status).toBe(200);
      // Upstreams of the platform are always allowed. This upstream is at 127.0.0.1, which `env` does not allow.
      const { status } = await world.send({
        url,
        target: '/token-handler/v1/targets/platform/namespaces/demo/entries',
      });
      expect(status).toBe(200);
    } finally {
      await replica.close();
    }
  });

  it('is not extended by the configuration of a tenant', async () => {
    const open = { clientId: 'open' };
    await world.handler.register('open', { authCallbackUrl: world.clientUrl('callback', {}, open) });
    const person = await world.enter(undefined, world.authUrl({}, open));
    const target = '/token-handler/v1/targets/opened/x';
    expect((await world.send({ target, as: person })).status).toBe(200);
    world.upstream.forget();
    const replica = await world.replica({ UPSTREAM_ALLOWED_DOMAINS: 'example.ca' });
    onTestFinished(() => replica.close());
    const refused = await world.send({ url: replica.url, target, as: person });
    expect([refused.status, refused.problem]).toEqual([403, 'upstream-not-allowed']);
    expect(world.upstream.seen).toEqual([]);
  });

  it('prevents the start if an entry is invalid', async () => {
    for (const UPSTREAM_ALLOWED_DOMAINS of ['*', 'https://example.ca', 'example.ca,', ','])
      expect(() => world.handler.startReplica({ env: { UPSTREAM_ALLOWED_DOMAINS } })).toThrow(
        'UPSTREAM_ALLOWED_DOMAINS',
      );
  });
});

it('a target of another client than the session’s gets 404', async () => {
  const other = { clientId: 'other' };
  await world.handler.register('other', { authCallbackUrl: world.clientUrl('callback', {}, other) });
  const theirs = await world.enter(undefined, world.authUrl({}, other));
  const target = '/token-handler/v1/targets/theirs/x';
  expect((await world.send({ target, as: theirs })).status).toBe(200);
  world.upstream.forget();
  expect((await world.send({ target, as: world.person })).status).toBe(404);
  expect(world.upstream.seen).toEqual([]);
});
