// Tests the mailbox over SMTP and HTTP.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import nodemailer from 'nodemailer';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/service/clock.ts';
import { startTestMailbox } from '../../test/support/mailbox.ts';
import { type Listening, listen } from '../listen.ts';
import { type Mailbox, openMailbox } from './mailbox.ts';
import { createMailboxRoutes } from './routes.ts';

let directory: string;
let mailbox: Mailbox;
let web: Listening;
let url: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-mailbox-'));
  await open();
});
afterEach(async () => {
  await close();
  await rm(directory, { recursive: true });
});

async function open(): Promise<void> {
  mailbox = await openMailbox({ directory, clock: systemClock });
  web = await listen(express().use('/mailbox', createMailboxRoutes(mailbox.messages, 'PORT=9000 npm run demo')));
  url = `http://127.0.0.1:${web.port}/mailbox`;
}

async function close(): Promise<void> {
  await Promise.all([mailbox.close(), web.close()]);
}

const send = (message: { to?: string; subject?: string; text?: string; html?: string }) =>
  nodemailer
    .createTransport({ host: '127.0.0.1', port: mailbox.port })
    .sendMail({ from: 'forms@example.com', to: 'ana@example.org', subject: 'Your code', text: 'K2TPX4', ...message });
const list = async (): Promise<{ id: string; subject: string }[]> => (await fetch(`${url}/messages`)).json() as never;

it('a message sent by SMTP is listed as JSON with id, to, subject, text and received, newest first', async () => {
  await send({});
  await send({ subject: 'Second', to: 'ana@example.org, bob@example.org', text: 'Grüße 🙂' });
  expect(await list()).toEqual([
    expect.objectContaining({ subject: 'Second', to: 'ana@example.org, bob@example.org', text: 'Grüße 🙂' }),
    {
      id: expect.any(String),
      to: 'ana@example.org',
      subject: 'Your code',
      text: 'K2TPX4',
      received: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    },
  ]);
});

it('an empty mailbox shows the command of the demo that it was given', async () => {
  expect(await (await fetch(url)).text()).toContain('<code>PORT=9000 npm run demo</code>');
});

it('messages survive a restart, and DELETE empties the mailbox for good', async () => {
  await send({});
  await close();
  await open();
  expect(await list()).toHaveLength(1);
  expect((await fetch(`${url}/messages`, { method: 'DELETE' })).status).toBe(204);
  expect(await list()).toEqual([]);
  await close();
  await open();
  expect(await list()).toEqual([]);
});

it('the pages escape the text of a message', async () => {
  await send({ subject: '<script>alert(1)</script>', text: '<img src=x onerror=alert(2)>' });
  const [message] = await list();
  for (const address of [url, `${url}/${message?.id}`]) {
    const page = await (await fetch(address)).text();
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(page).not.toContain('<script>alert(1)');
    expect(page).not.toContain('<img src=x');
  }
});

it('the HTML of a message is shown in a sandbox that runs and loads nothing', async () => {
  await send({ html: '<p>Hello</p><script>alert(1)</script>' });
  const [message] = await list();
  const page = await fetch(`${url}/${message?.id}`);
  expect(await page.text()).toContain('<iframe title="HTML version of the message" sandbox="allow-popups');
  const frame = await fetch(`${url}/${message?.id}/html`);
  const policy = frame.headers.get('Content-Security-Policy');
  expect(policy).toMatch(/^sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'/);
  expect(policy).not.toContain('allow-scripts');
  expect(await frame.text()).toContain('<p>Hello</p>');
});

it('a search finds the messages whose subject, recipient or text contain each word, and escapes it', async () => {
  await send({ subject: 'Your code' });
  await send({ subject: 'Your draft will be locked', to: 'bob@example.org' });
  const find = async (query: string) => {
    const page = await (await fetch(`${url}?q=${encodeURIComponent(query)}`)).text();
    return { page, found: [...page.matchAll(/<strong>([^<]*)</g)].map(([, subject]) => subject) };
  };
  expect((await find('BOB locked')).found).toEqual(['Your draft will be locked']);
  expect((await find('k2tpx4 your')).found).toHaveLength(2);
  expect((await find(' ')).found).toHaveLength(2);
  const { page, found } = await find('"><script>');
  expect(found).toEqual([]);
  expect(page).toContain('No mail contains “&quot;&gt;&lt;script&gt;”.');
  expect(page).not.toContain('"><script>');
});

it('a message shows its source, escaped', async () => {
  await send({ html: '<p>Grüße</p>' });
  const [message] = await list();
  const page = await (await fetch(`${url}/${message?.id}`)).text();
  expect(page).toContain('From: forms@example.com');
  expect(page).toMatch(/Content-Type: multipart\/alternative/);
  expect(page).not.toContain('<p>Grüße</p>');
  expect(JSON.stringify(await list())).not.toContain('multipart');
});

it('an unknown message is 404', async () => {
  expect((await fetch(`${url}/nothing`)).status).toBe(404);
  expect((await fetch(`${url}/nothing/html`)).status).toBe(404);
});

it('a test mailbox waits for a message, and lists what it has when none arrives', async () => {
  const test = await startTestMailbox();
  onTestFinished(() => test.close());
  const waiting = test.waitFor(({ subject }) => subject === 'Two');
  const transport = nodemailer.createTransport(test.url);
  for (const subject of ['One', 'Two'])
    await transport.sendMail({ from: 'a@example.com', to: 'b@example.com', subject, text: 'x' });
  expect((await waiting).to).toBe('b@example.com');
  await expect(test.waitFor(({ subject }) => subject === 'Three', 50)).rejects.toThrow('there are: ["Two","One"]');
});
