// Tests with a real service that the browser's buttons Back and Forward lose no form data. Also tests that an applicant
// can start a draft again after the response to the first attempt was lost.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type ApplicantPage, type ApplicantWorld, startApplicantWorld } from '../applicant-world.ts';

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

describe('Start after the response to the first attempt was lost', () => {
  /** Presses Start. The service creates the draft, but its response does not reach the browser. */
  const loseResponse = async ({ page, context }: ApplicantPage) => {
    const session = await context.newCDPSession(page);
    await session.send('Fetch.enable', { patterns: [{ urlPattern: '*/forms', requestStage: 'Response' }] });
    session.once('Fetch.requestPaused', ({ requestId }) =>
      session.send('Fetch.failRequest', { requestId, errorReason: 'ConnectionReset' }),
    );
    await start(page);
    await page.locator('.error-summary:focus').waitFor();
    await session.detach();
  };
  const forms = async () => (await world.apply.forms.pool.query('SELECT id FROM forms')).rowCount ?? 0;

  it('opens the same draft if nothing was changed', async () => {
    const opened = await open();
    const { page } = opened;
    const before = await forms();
    await loseResponse(opened);
    await start(page);
    await page.getByLabel('Name of the business').waitFor();
    expect(await forms()).toBe(before + 1);
  });

  it.each([
    ['the name', (page: Page) => page.getByLabel('Your name').fill('Ana')],
    ['the address', (page: Page) => page.getByLabel('Your email address').fill(`${randomUUID()}@example.org`)],
    ['the language', (page: Page) => page.getByLabel('Français').check()],
  ])('opens a draft if %s was changed', async (_what, change) => {
    const opened = await open();
    const { page } = opened;
    await loseResponse(opened);
    await change(page);
    await page.locator('button[type=submit]').click();
    await page.getByLabel('Name of the business').fill('Bakery');
    await isSaved(page);
    expect(await stored(page)).toEqual({ businessName: 'Bakery' });
  });
});
