// The gateway of `npm start`: what goes where, who is served, and what it says of its parts.
import express from 'express';
import { request } from 'undici';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createGateway } from './gateway.ts';
import { type Listening, listen } from './listen.ts';
import { openMessageStore } from './mailbox/message-store.ts';

let target: Listening;
let gateway: Listening;
let parts: Record<string, boolean>;

/** Answers what it was asked. */
const echo = (name: string) =>
  express().use((req, res) => {
    res.json({ name, url: req.originalUrl, forwardedFor: req.get('X-Forwarded-For'), host: req.get('Host') });
  });

beforeEach(async () => {
  parts = { postgres: true, 'form service': true };
  target = await listen(echo('target'));
  const app = createGateway({
    publicUrl: 'http://localhost:8080',
    access: echo('access'),
    messages: await openMessageStore(undefined),
    targets: { platformServer: 'http://127.0.0.1:1', forms: `http://127.0.0.1:${target.port}` },
    parts: async () => parts,
  });
  gateway = await listen(app);
});
afterEach(() => Promise.all([target.close(), gateway.close()]));

const open = async (path: string, headers: Record<string, string> = {}) => {
  const { statusCode, headers: answered, body } = await request(`http://127.0.0.1:${gateway.port}${path}`, { headers });
  return { status: statusCode, headers: answered, text: await body.text() };
};

it('requests keep their path and query on the way, and say where they came from', async () => {
  const { text } = await open('/form/v1/forms?top=5&name=a%2Fb', { Host: 'localhost:8080' });
  expect(JSON.parse(text)).toEqual({
    name: 'target',
    url: '/form/v1/forms?top=5&name=a%2Fb',
    forwardedFor: '127.0.0.1',
    host: 'localhost:8080',
  });
  for (const path of ['/docs', '/docs/start.js', '/openapi.json', '/swagger/docs/v1']) {
    expect(JSON.parse((await open(path)).text)).toMatchObject({ name: 'target', url: path });
  }
});

it('a path that only begins like one of a service is not that service', async () => {
  const { text } = await open('/form/v1x');
  expect(JSON.parse(text).name).toBe('access');
});

it('a service that does not answer is 503 with a problem', async () => {
  const { status, headers, text } = await open('/configuration/v2/configuration/a/b');
  expect(status).toBe(503);
  expect(headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(text)).toMatchObject({ status: 503, instance: '/configuration/v2/configuration/a/b' });
});

it('/health is 200 only when all parts are ready, and names each', async () => {
  expect(await open('/health')).toMatchObject({ status: 200, text: JSON.stringify(parts) });
  parts = { ...parts, 'form service': false };
  expect(await open('/health')).toMatchObject({ status: 503, text: JSON.stringify(parts) });
});

it('the start page links to what is here, and names what is not ready', async () => {
  const page = await open('/');
  for (const link of ['/docs', '/mailbox', '/health', '/openapi.json']) expect(page.text).toContain(`href="${link}"`);
  expect(page.text).toContain('Everything is ready');
  expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'/);
  parts = { postgres: true, 'form service': false };
  expect((await open('/')).text).toContain('<strong>form service</strong>');
});

it('a host name that does not always mean this machine is refused', async () => {
  for (const host of ['localhost', 'localhost:8080', '127.0.0.1:8080', '[::1]:8080', 'forms.localhost']) {
    expect((await open('/health', { Host: host })).status).toBe(200);
  }
  for (const host of ['evil.example.org', 'localhost.evil.example.org', '127.0.0.1.evil.example.org']) {
    expect((await open('/mailbox/messages', { Host: host })).status).toBe(421);
  }
});
