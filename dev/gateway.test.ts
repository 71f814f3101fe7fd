// Tests the gateway of `npm start`: routing, allowed host names, and the health of the components.
import { once } from 'node:events';
import { connect } from 'node:net';
import express from 'express';
import { request } from 'undici';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sendRaw } from '../test/support/raw-http.ts';
import { createGateway } from './gateway.ts';
import { type Listening, listen } from './listen.ts';
import { openMessageStore } from './mailbox/message-store.ts';

let forms: Listening;
let tokenHandler: Listening;
let gateway: Listening;
let parts: Record<string, boolean>;

/** Creates an app that responds with its name and with facts about the request that it received. */
const echo = (name: string) =>
  express().use((req, res) => {
    res.json({ name, url: req.originalUrl, forwardedFor: req.get('X-Forwarded-For'), host: req.get('Host') });
  });

beforeEach(async () => {
  parts = { postgres: true, 'form service': true };
  [forms, tokenHandler] = await Promise.all([listen(echo('forms')), listen(echo('token handler'))]);
  const { app, upgrade: passUpgrade } = createGateway({
    publicUrl: 'http://localhost:8080',
    access: echo('access'),
    messages: await openMessageStore(undefined),
    targets: {
      platformServer: 'http://127.0.0.1:1',
      forms: `http://127.0.0.1:${forms.port}`,
      tokenHandler: `http://127.0.0.1:${tokenHandler.port}`,
    },
    parts: async () => parts,
  });
  gateway = await listen(app);
  gateway.server.on('upgrade', passUpgrade);
});
afterEach(() => Promise.all([forms.close(), tokenHandler.close(), gateway.close()]));

const open = async (path: string, headers: Record<string, string> = {}) => {
  const { statusCode, headers: received, body } = await request(`http://127.0.0.1:${gateway.port}${path}`, { headers });
  return { status: statusCode, headers: received, text: await body.text() };
};

function upgrade(path: string, host: string) {
  const socket = connect(gateway.port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString())).on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  return { socket, received: () => text };
}

it('a request keeps its path and query, and names its origin in X-Forwarded-For', async () => {
  const { text } = await open('/form/v1/forms?top=5&name=a%2Fb', { Host: 'localhost:8080' });
  expect(JSON.parse(text)).toEqual({
    name: 'forms',
    url: '/form/v1/forms?top=5&name=a%2Fb',
    forwardedFor: '127.0.0.1',
    host: 'localhost:8080',
  });
  for (const path of ['/docs', '/docs/start.js', '/openapi.json', '/problems/stale', '/swagger/docs/v1']) {
    expect(JSON.parse((await open(path)).text)).toMatchObject({ name: 'forms', url: path });
  }
});

it.each([
  ['/token-handler/docs', '/docs'],
  ['/token-handler/openapi.json', '/openapi.json'],
  ['/token-handler/swagger/docs/v1', '/swagger/docs/v1'],
])(
  '%s is served by the token handler as %s, an address that otherwise belongs to the form service',
  async (path, url) => {
    expect(JSON.parse((await open(path)).text)).toMatchObject({ name: 'token handler', url });
    expect(JSON.parse((await open(url)).text)).toMatchObject({ name: 'forms', url });
  },
);

it.each([
  ['/token-handler/sessions', '/token-handler/v1/sessions'],
  ['/token-handler/targets/a/b?c=%2Fd&e', '/token-handler/v1/targets/a/b?c=%2Fd&e'],
  ['/token-handler/targets/a/%2e%2e/b', '/token-handler/v1/targets/a/%2e%2e/b'],
  ['/token-handler/targets/a/../../b', '/token-handler/v1/targets/a/../../b'],
  ['/token-handler/v1/sessions?x=1', '/token-handler/v1/sessions?x=1'],
  ['/token-handler/v1', '/token-handler/v1'],
  ['/token-handler/v1x', '/token-handler/v1/v1x'],
  ['/token-handler', '/token-handler/v1'],
  ['/token-handler/docs2', '/token-handler/v1/docs2'],
  ['/token-handler?x', '/token-handler/v1?x'],
])('%s reaches the token handler as %s, as behind the ingress of a frontend', async (path, url) => {
  // The test uses a raw socket, because a client library would resolve dot segments.
  const { body } = await sendRaw(gateway.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  expect(JSON.parse(body)).toMatchObject({ name: 'token handler', url });
});

it('upgrades reach the token handler under the rewritten path, carry data both ways, and end with the gateway', async () => {
  tokenHandler.server.on('upgrade', (req, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.write(req.url ?? '');
    socket.pipe(socket);
  });
  const { socket, received } = upgrade('/token-handler/targets/a/ws?b=c', 'localhost');
  await expect.poll(received).toMatch(/^HTTP\/1\.1 101 .*\/token-handler\/v1\/targets\/a\/ws\?b=c$/s);
  socket.write(' and back');
  await expect.poll(received).toMatch(/ and back$/);
  const ended = once(socket, 'close');
  await gateway.close();
  await ended;
});

it.each([
  ['to another service', '/form/v1/ws', 'localhost'],
  ['to a path that only begins like the token handler', '/token-handlers/ws', 'localhost'],
  ['for a host name that does not always mean this machine', '/token-handler/targets/a/ws', 'evil.example.org'],
])('an upgrade %s is refused', async (_, path, host) => {
  const { socket, received } = upgrade(path, host);
  await once(socket, 'close');
  expect(received()).toMatch(/^HTTP\/1\.1 404 /);
});

it('a path that only begins like the path of a service is not routed to that service', async () => {
  const { text } = await open('/form/v1x');
  expect(JSON.parse(text).name).toBe('access');
});

it('a service that does not respond is 503 with a problem', async () => {
  const { status, headers, text } = await open('/configuration/v2/configuration/a/b');
  expect(status).toBe(503);
  expect(headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(text)).toMatchObject({ status: 503, instance: '/configuration/v2/configuration/a/b' });
});

it('/health is 200 only when all components are ready, and names each', async () => {
  expect(await open('/health')).toMatchObject({ status: 200, text: JSON.stringify(parts) });
  parts = { ...parts, 'form service': false };
  expect(await open('/health')).toMatchObject({ status: 503, text: JSON.stringify(parts) });
});

it('the start page links to the APIs and pages, and names what is not ready', async () => {
  const page = await open('/');
  const links = ['/docs', '/openapi.json', '/token-handler/docs', '/token-handler/openapi.json', '/mailbox', '/health'];
  for (const link of links) expect(page.text).toContain(`href="${link}"`);
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
