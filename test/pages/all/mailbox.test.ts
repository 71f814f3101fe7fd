// Tests the pages of the development mailbox in Chromium: each page and state, in light and dark colours, on a phone.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import nodemailer from 'nodemailer';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Listening, listen } from '../../../dev/listen.ts';
import { type Mailbox, openMailbox } from '../../../dev/mailbox/mailbox.ts';
import { createMailboxRoutes } from '../../../dev/mailbox/routes.ts';
import { systemClock } from '../../../src/service/clock.ts';
import { launchChromium } from '../../support/chromium.ts';
import { faultsOf } from '../applicant-world.ts';
import { viewsOfRun } from '../selection.ts';

let directory: string;
let mailbox: Mailbox;
let web: Listening;
let url: string;
let browser: Browser;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-mailbox-'));
  mailbox = await openMailbox({ directory, clock: systemClock });
  web = await listen(express().use('/mailbox', createMailboxRoutes(mailbox.messages)));
  url = `http://127.0.0.1:${web.port}/mailbox`;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await Promise.all([mailbox?.close(), web?.close()]);
  await rm(directory, { recursive: true, force: true });
});

const hostile = '<img src=x onerror="document.title=1">';

async function fill(): Promise<void> {
  const transport = nodemailer.createTransport({ host: '127.0.0.1', port: mailbox.port });
  const mail = { from: 'forms@example.com', to: 'ana@example.org' };
  await transport.sendMail({ ...mail, subject: 'Your code', text: 'K2TPX4' });
  await transport.sendMail({
    ...mail,
    subject: `Long ${'line '.repeat(60)}`,
    text: `${'word'.repeat(200)}\n${hostile}`,
  });
  const body = `<div lang="fr"><h1>Reçu</h1><p>Bonjour,</p><p><a href="https://example.org">Ouvrir</a></p>${hostile}</div>`;
  await transport.sendMail({ ...mail, subject: hostile, text: 'Bonjour', html: body });
}

const views = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1000, height: 700 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1000, height: 700 } },
  { name: 'phone', colorScheme: 'light', viewport: { width: 320, height: 640 } },
] as const;

describe.each(viewsOfRun(views))('the mailbox in the view $name', ({ colorScheme, viewport }) => {
  async function open(): Promise<Page> {
    // The context bypasses the pages' policy, because the policy forbids scripts such as axe.
    const context = await browser.newContext({ colorScheme, viewport, bypassCSP: true, reducedMotion: 'reduce' });
    onTestFinished(() => context.close());
    return context.newPage();
  }

  it('has no violations in the empty list, the list, a search without and with a result, and a message', async () => {
    await mailbox.messages.clear();
    const page = await open();
    await page.goto(url);
    await page.getByText('No mail yet.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await fill();
    await page.reload();
    await page.getByText('3 messages').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByLabel('Search subject, recipient and text').fill('nothing like this');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('No mail contains “nothing like this”.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByLabel('Search subject, recipient and text').fill('k2tpx4');
    await page.keyboard.press('Enter');
    await page.getByText('1 message', { exact: true }).waitFor();
    await page.getByRole('link', { name: /Your code/ }).click();
    await page.getByRole('heading', { name: 'Your code', level: 1 }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByText('Headers and parts as received').click();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('has no violations in a message with HTML, whose scripts do not run, and in that of a missing one', async () => {
    await mailbox.messages.clear();
    await fill();
    const page = await open();
    await page.goto(url);
    await page
      .getByRole('link', { name: /onerror/ })
      .first()
      .click();
    await page.frameLocator('iframe').getByRole('heading', { name: 'Reçu' }).waitFor();
    await page.getByText('Headers and parts as received').click();
    expect(await faultsOf(page)).toEqual([]);
    await expect.poll(() => page.title()).toBe(`${hostile} – Mailbox`);
    await page.goto(`${url}/missing`);
    await page.getByRole('heading', { name: 'Message not found' }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });
});

it('a list that is open shows new mail, and “Empty the mailbox” deletes it, under the policy of the page', async () => {
  await mailbox.messages.clear();
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  const complaints: string[] = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(url);
  await fill();
  await page.getByText('3 messages').waitFor();
  await page.getByRole('button', { name: 'Empty the mailbox' }).click();
  await page.getByText('No mail yet.').waitFor();
  expect(mailbox.messages.all()).toEqual([]);
  expect(complaints).toEqual([]);
});
