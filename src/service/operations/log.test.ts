// Tests what the log contains, and that it never contains secrets. Each test places a secret where one can occur.
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { startApp } from '../../../test/support/listening-app.ts';
import type { Caller } from '../auth/identity.ts';
import { anonymous, type Guard, route } from '../http/http-app.ts';
import { Problem } from '../http/problem.ts';
import { describeError } from './error-description.ts';

const caller: Caller = {
  subject: 'subject-1',
  name: 'canary-name',
  email: 'canary@example.org',
  issuer: 'https://access.example.org/realms/demo',
  realm: 'demo',
  clientId: 'demo-app',
  isCore: false,
  roles: new Set(['canary-role']),
};
const identified: Guard = {
  name: 'identified',
  admits: ['bearer'],
  check(_request, response) {
    response.locals.caller = caller;
    response.locals.tenant = {
      id: 'urn:example:platform:tenant-service:v2:/tenants/demo',
      name: 'Demo',
      realm: 'demo',
    };
  },
};

const failures: Record<string, () => unknown> = {
  problem: () => new Problem('conflict', 'canary-detail'),
  unexpected: () =>
    new Error('cannot send to canary@example.org with eyJcanary.eyJcanary.canary at https://host/x?code=canary'),
  dependency: () =>
    new Problem('dependency-failed', 'What the client is told.', {
      cause: new SyntaxError('Unexpected token in JSON: canary'),
    }),
  upstream: () =>
    Object.assign(new Error('failed'), {
      request: { headers: { authorization: 'canary' } },
      body: 'canary',
      config: { data: 'canary' },
    }),
};

const failing = route({
  method: 'post',
  path: '/fail/:kind',
  summary: 'Fails',
  guards: [identified],
  body: z.unknown(),
  responses: { 200: { description: 'Never' } },
  handle: (_input, request) => {
    throw failures[String(request.params.kind)]?.();
  },
});

describe('the log of a request', () => {
  it('is one JSON line with request id, method, route pattern, status, milliseconds, tenant and caller', async () => {
    const app = await startApp([
      route({
        method: 'get',
        path: '/forms/:formId',
        summary: 'A form',
        guards: [identified],
        responses: { 200: { description: 'Fine' } },
        handle: (_input, _request, response) => void response.json({}),
      }),
    ]);
    onTestFinished(() => app.close());
    const { headers } = await fetch(`${app.url}/forms/1`);
    const requestId = headers.get('x-request-id');
    expect(await app.requestLines(1)).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        name: 'test',
        requestId,
        traceId: requestId?.replaceAll('-', ''),
        method: 'GET',
        route: '/forms/:formId',
        status: 200,
        ms: expect.any(Number),
        tenant: 'urn:example:platform:tenant-service:v2:/tenants/demo',
        caller: 'subject-1',
        msg: 'request',
      },
    ]);
  });

  it('never contains a token, code, cookie, path, query, address, form data or name, however the request fails', async () => {
    const app = await startApp([failing], { bodyLimit: 2_048 });
    onTestFinished(() => app.close());
    const headers = {
      Authorization: 'Bearer canary-token',
      Cookie: 'session=canary-cookie',
      'X-Form-Code': 'canary-code',
      'X-Forwarded-For': 'canary-forwarded',
      'User-Agent': 'canary-agent',
      'Content-Type': 'application/json',
    };
    const bodies = [
      '{"email":"canary@example.org"}',
      '{"canary"',
      '"\\u0000canary"',
      `"${'canary'.repeat(500)}"`,
      '{"__proto__":"canary"}',
    ];
    const kinds = [...Object.keys(failures), 'canary-path'];
    for (const kind of kinds)
      for (const body of bodies)
        await fetch(`${app.url}/fail/${kind}?code=canary-code`, { method: 'POST', headers, body });
    await fetch(`${app.url}/canary-path?code=canary`, { headers });
    await fetch(`${app.url}/fail/%ffcanary`, { headers });
    await app.requestLines(kinds.length * bodies.length + 2);
    expect(app.text()).not.toContain('canary');
    expect(app.lines().filter(({ level }) => level === 'error').length).toBeGreaterThan(3);
  });

  it('never holds a value that a database error quotes, only its code', async () => {
    const client = new pg.Client({ connectionString: inject('postgresUrl') });
    onTestFinished(() => client.end());
    await client.connect();
    await client.query('CREATE TEMP TABLE people (email text PRIMARY KEY, age int CHECK (age > 0))');
    await client.query("INSERT INTO people VALUES ('canary@example.org', 1)");
    const app = await startApp([
      route({
        method: 'post',
        path: '/sql',
        summary: 'Runs SQL that fails',
        guards: [anonymous],
        body: z.object({ sql: z.string(), values: z.array(z.unknown()) }),
        responses: { 200: { description: 'Never' } },
        async handle({ body }, _request, response) {
          response.json(await client.query(body.sql, body.values));
        },
      }),
    ]);
    onTestFinished(() => app.close());
    const run = async (sql: string, ...values: unknown[]) => {
      const options = { method: 'POST', headers: { 'Content-Type': 'application/json' } };
      const response = await fetch(`${app.url}/sql`, { ...options, body: JSON.stringify({ sql, values }) });
      return `${response.status} ${await response.text()}`;
    };
    const answers = [
      await run('INSERT INTO people VALUES ($1, 1)', 'canary@example.org'),
      await run('INSERT INTO people VALUES ($1, -1)', 'another-canary'),
      await run('SELECT $1::int', 'canary'),
      await run("SELECT 'canary'::jsonb"),
      await run('SELECT canary FROM people'),
    ];
    expect(answers.map((answer) => answer.slice(0, 3))).toEqual(['500', '500', '400', '400', '500']);
    expect(answers.join()).not.toContain('canary');
    const lines = await app.requestLines(5);
    expect(app.text()).not.toContain('canary');
    expect(lines[0]).toMatchObject({
      level: 'error',
      err: { code: '23505', message: expect.stringContaining('may quote') },
    });
  });
});

describe('a log line', () => {
  it('carries the time in UTC, to the millisecond, across seconds', async () => {
    const { log, lines } = captureLog();
    const begun = Date.now();
    for (let count = 0; count < 60; count += 1) {
      log.info('x');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const times = lines().map(({ time }) => Date.parse(String(time)));
    expect(times[0]).toBeGreaterThanOrEqual(begun);
    expect(times.at(-1)).toBeLessThanOrEqual(Date.now());
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    expect(new Set(times).size).toBeGreaterThan(30);
  });

  it('masks members with the name of a secret, at its top and one level below', () => {
    const { log, lines } = captureLog();
    log.info(
      { token: 'canary', code: 'canary', request: { authorization: 'canary', cookie: 'canary', path: '/x' } },
      'x',
    );
    expect(lines()[0]).toMatchObject({
      token: '[redacted]',
      code: '[redacted]',
      request: { authorization: '[redacted]', cookie: '[redacted]', path: '/x' },
    });
  });

  it('masks a member with the name of a secret whatever its value is', () => {
    const { log, lines } = captureLog();
    log.info({ data: { name: 'canary' }, address: ['canary'], code: new Error('canary'), request: { data: {} } }, 'x');
    expect(lines()[0]).toMatchObject({
      ...{ data: '[redacted]', address: '[redacted]', code: '[redacted]' },
      request: { data: '[redacted]' },
    });
  });

  it('keeps the code of an error, which tells what failed', () => {
    const { log, lines } = captureLog();
    log.warn({ err: Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }) }, 'x');
    expect(lines()[0]).toMatchObject({ err: { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 127.0.0.1:1' } });
  });

  it('masks addresses, tokens and queries in the message of an error', () => {
    const message = 'GET https://host/a?code=ABC for <alice@example.org>: eyJhbGciOi.eyJzdWIi.c2ln failed';
    expect(describeError(new Error(message)).message).toBe(
      'GET https://host/a?[redacted] for <[redacted]>: [redacted] failed',
    );
  });

  it('masks the user and the password of a URL in the message of an error', () => {
    const message = 'cannot use "redis://user:canary,canary;(canary)@redis:6380/2" now';
    expect(describeError(new TypeError(message)).message).toBe('cannot use "redis://[redacted]:6380/2" now');
  });

  it('replaces the message of a mail server, which quotes addresses', () => {
    const error = Object.assign(new Error('550 canary is unknown'), {
      code: 'EENVELOPE',
      responseCode: 550,
      response: 'canary',
    });
    expect(JSON.stringify(describeError(error))).not.toContain('canary');
  });

  it('stops at a cycle of causes', () => {
    const one = new Error('one');
    one.cause = new Error('two', { cause: one });
    expect(JSON.stringify(describeError(one)).match(/"two"/g)).toHaveLength(3);
  });

  it('contains only the type of a thrown value that is not an error', () => {
    expect(describeError('canary')).toEqual({ type: 'string', message: 'not an Error' });
    expect(describeError({ token: 'canary' })).toEqual({ type: 'object', message: 'not an Error' });
  });
});
