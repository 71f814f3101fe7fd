// Tests the check of the mail server with a real SMTP server that requires a login.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createCertificate } from '../../../test/support/certificate.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { checkMail } from './mail-check.ts';

const folder = mkdtempSync(join(tmpdir(), 'formgate-mail-check-'));
const { key, certificate } = createCertificate(folder);
let mails = 0;
let server: SMTPServer;
let host: string;

beforeAll(async () => {
  server = new SMTPServer({
    ...{ key, cert: certificate, allowInsecureAuth: true, disableReverseLookup: true, closeTimeout: 50 },
    onAuth: ({ username, password }, _session, done) => {
      const isBusy = username === 'busy';
      const reply = isBusy ? 'the directory of canary is busy' : 'canary is not the password';
      if (password === 'canary') done(null, { user: username });
      else done(Object.assign(new Error(reply), { responseCode: isBusy ? 454 : 535 }));
    },
    onMailFrom: (_address, _session, done) => {
      mails += 1;
      done();
    },
  });
  // A client that does not trust the certificate aborts the handshake, and the server then emits an error.
  server.on('error', () => undefined);
  host = await listen(server.server);
});

afterAll(async () => {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  rmSync(folder, { recursive: true });
});

async function listen(listener: Server): Promise<string> {
  return `127.0.0.1:${await listenOnLoopback(listener)}`;
}

async function problems(url: string, timeLimit = 5_000): Promise<string[]> {
  const findings = await checkMail(url, timeLimit);
  expect(JSON.stringify(findings)).not.toContain('canary');
  return findings.map(({ severity, name, problem }) => `${severity}: ${name}: ${problem}`);
}

const anyCertificate = 'tls.rejectUnauthorized=false';
const refused = 'SMTP_URL: the mail server does not accept the user and password';
const unusable = 'SMTP_URL: the mail server cannot be used';

it('the right user and password pass, and no mail is sent', async () => {
  expect(await problems(`smtp://forms:canary@${host}?${anyCertificate}`)).toEqual([]);
  expect(mails).toBe(0);
});

it.each([
  ['a wrong password', 'forms:canary-2', `error: ${refused} (EAUTH 535 AUTH PLAIN)`],
  ['a user without a password', 'canary', `error: ${refused} (EAUTH API)`],
  ['a login that fails only for now', 'busy:canary-2', `unreachable: ${refused} (EAUTH 454 AUTH PLAIN)`],
])('%s is reported without the reply of the server', async (_title, login, expected) => {
  expect(await problems(`smtp://${login}@${host}?${anyCertificate}`)).toEqual([expected]);
});

it('a certificate that is not trusted is reported', async () => {
  const [found] = await problems(`smtp://forms:canary@${host}`);
  expect(found).toMatch(/^unreachable: SMTP_URL: the mail server cannot be used \((DEPTH_ZERO_)?SELF_SIGNED_CERT/);
});

it('a server that is not there, greets with a refusal or never responds is reported', async () => {
  expect(await problems('smtp://canary:canary@127.0.0.1:9')).toEqual([`unreachable: ${unusable} (ECONNREFUSED CONN)`]);
  const sockets: Socket[] = [];
  const greetings = ['554 no canary here\r\n', '421 canary is busy\r\n'];
  const odd = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
    const greeting = greetings.shift();
    if (greeting) socket.end(greeting);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    odd.close();
  });
  const url = `smtp://${await listen(odd)}`;
  expect(await problems(url)).toEqual([`error: ${unusable} (EPROTOCOL 554 CONN)`]);
  expect(await problems(url)).toEqual([`unreachable: ${unusable} (EPROTOCOL 421 CONN)`]);
  expect(await problems(url, 500)).toEqual([`unreachable: ${unusable} (ETIMEDOUT)`]);
});
