// Tests the attributes with which the cookies of a session are set and cleared.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express, { type Response } from 'express';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clearCsrfCookie, clearSessionCookie, issueCsrfCookie } from './cookies.ts';

const session = { handle: 'a handle', csrfSecret: 'a secret' };
const steps: Record<string, (response: Response, secure: boolean) => void> = {
  issue: (response, secure) => issueCsrfCookie(response, session, secure),
  clear: clearCsrfCookie,
  end: (response, secure) => clearSessionCookie(response, '__Host-session', secure),
};
const app = express().get('/:step/:scheme', ({ params }, response) => {
  steps[params.step]?.(response, params.scheme === 'https');
  response.end();
});
let server: ReturnType<typeof app.listen>;
beforeAll(async () => {
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => new Promise((done) => server.close(done)));

const epoch = 'Expires=Thu, 01 Jan 1970 00:00:00 GMT';
const token = 'XSRF-TOKEN=A6y2RidTqsJo3xtrlA0m6m8HbmsGYZTURKuRXnl4qYM';
it.each([
  // The CSRF cookie XSRF-TOKEN is not HttpOnly, because scripts of the site must be able to read it.
  ['issue/https', `${token}; Path=/; Secure; SameSite=Strict`],
  ['issue/http', `${token}; Path=/; SameSite=Strict`],
  ['clear/https', `XSRF-TOKEN=; Path=/; ${epoch}; Secure; SameSite=Strict`],
  ['clear/http', `XSRF-TOKEN=; Path=/; ${epoch}; SameSite=Strict`],
  ['end/https', `__Host-session=; Path=/; ${epoch}; HttpOnly; Secure; SameSite=Lax`],
  ['end/http', `__Host-session=; Path=/; ${epoch}; HttpOnly; SameSite=Lax`],
])('%s sets %s', async (path, expected) => {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/${path}`, { headers: { connection: 'close' } });
  expect(response.headers.getSetCookie()).toEqual([expected]);
});
