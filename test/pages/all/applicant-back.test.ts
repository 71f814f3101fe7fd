// Tests with a real service that the browser's buttons Back and Forward lose no answers.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type ApplicantWorld, startApplicantWorld } from '../applicant-world.ts';

let world: ApplicantWorld;
beforeAll(async () => {
  world = await startApplicantWorld();
});
afterAll(() => world?.close());

async function open() {
  const opened = await world.open();
  onTestFinished(async () => {
    await opened.context.close();
    expect(opened.complaints).toEqual([]);
  });
  await opened.page.goto(world.urlOf('business-licence'));
  await opened.page.getByLabel('Your email address').fill(`${randomUUID()}@example.org`);
  return opened;
}

const start = (page: Page) => page.getByRole('button', { name: 'Start now' }).click();
const isSaved = (page: Page) => page.locator('[data-state=saved]').waitFor();
const nameIn = (page: Page) => page.getByLabel('Name of the business').inputValue();

/** Returns the data of the form in the page's address, as the service has stored it. */
async function stored(page: Page): Promise<unknown> {
  const id = new URLSearchParams(new URL(page.url()).hash.slice(1)).get('form');
  const { rows } = await world.apply.forms.pool.query('SELECT data FROM forms WHERE id = $1', [id]);
  return rows[0]?.data;
}

describe('Back to the introduction, then Forward', () => {
  it('shows the answers as they were typed, and goes on saving them', async () => {
    const { page } = await open();
    await start(page);
    await page.getByLabel('Name of the business').fill('Bakery');
    await isSaved(page);
    await page.goBack();
    await page.getByRole('button', { name: 'Start now' }).waitFor();
    await page.goForward();
    await expect.poll(() => nameIn(page)).toBe('Bakery');
    await page.getByLabel('What the business does').fill('Bread');
    await isSaved(page);
    expect(await stored(page)).toEqual({ businessName: 'Bakery', activity: 'Bread' });
  });

  it('loses nothing without a connection, and saves it when the connection is back', async () => {
    const { page, context } = await open();
    await start(page);
    await page.getByLabel('Name of the business').fill('Bakery');
    await isSaved(page);
    await context.setOffline(true);
    await page.getByLabel('Name of the business').fill('Northern Lights Bakery');
    await page.getByText('No connection.').first().waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Start now' }).waitFor();
    await page.goForward();
    await page.getByText('No connection.').first().waitFor();
    await expect.poll(() => nameIn(page)).toBe('Northern Lights Bakery');
    await page.goBack();
    await page.getByRole('button', { name: 'Start now' }).waitFor();
    const dialog = page.waitForEvent('dialog');
    await page.close({ runBeforeUnload: true });
    await (await dialog).dismiss();
    const saving = page.waitForResponse((response) => response.request().method() === 'PUT' && response.ok());
    await context.setOffline(false);
    await saving;
    await page.goForward();
    await isSaved(page);
    expect([await nameIn(page), await stored(page)]).toEqual([
      'Northern Lights Bakery',
      { businessName: 'Northern Lights Bakery' },
    ]);
  });
});
