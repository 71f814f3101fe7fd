// Tests the applicant's pages in a browser, with a real form service, identity provider, platform and mailbox.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApplicantWorld, faultsOf, startApplicantWorld } from './applicant-world.ts';

let world: ApplicantWorld;
beforeAll(async () => {
  world = await startApplicantWorld();
});
afterAll(() => world?.close());

const saved = (page: Page) => page.locator('[data-state=saved]').waitFor();
const next = (page: Page) => page.getByRole('button', { name: 'Continue' }).click();

async function start(page: Page, definition: string): Promise<string> {
  const email = `${randomUUID()}@example.org`;
  await page.goto(world.urlOf(definition));
  await page.getByLabel('Your email address').fill(email);
  await page.getByRole('button', { name: 'Start now' }).click();
  return email;
}

test('an applicant begins a form, goes on in another browser with an emailed code, and submits it', async () => {
  // The first browser ignores the pages' content security policy, because the policy forbids scripts such as axe. The
  // second browser enforces the policy.
  const first = await world.open({ bypassCSP: true, colorScheme: 'dark', viewport: { width: 320, height: 640 } });
  const email = await start(first.page, 'business-licence');
  await first.page.getByLabel('Name of the business').fill('Northern Lights Bakery');
  await first.page.getByLabel('Kind of business').selectOption({ label: 'corporation' });
  await first.page.getByLabel('Registration number').fill('CA-2026-01877');
  await saved(first.page);
  expect(await faultsOf(first.page)).toEqual([]);
  const fragment = new URL(first.page.url()).hash;

  const second = await world.open();
  const { page } = second;
  await page.goto(world.urlOf('business-licence', fragment));
  await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
  const code = await world.codeFor(email, () => page.getByRole('button', { name: 'Send me a code by email' }).click());
  await page.getByLabel('Code', { exact: true }).fill(code);
  await page.getByRole('button', { name: 'Open my form' }).click();
  await page.getByRole('heading', { name: 'The business' }).waitFor();
  await expect.poll(() => page.getByLabel('Name of the business').inputValue()).toBe('Northern Lights Bakery');

  await page.getByLabel('What the business does').fill('Bread and coffee');
  await page.getByLabel('Day').fill('1');
  await page.getByLabel('Month').fill('10');
  await page.getByLabel('Year').fill('2026');
  await page.getByLabel('Number of employees').fill('6');
  await page.getByLabel('No', { exact: true }).check();
  await next(page);
  await page.getByLabel('Street and number').fill('12 Aurora Avenue');
  await page.getByLabel('City').fill('Whitehorse');
  await page.getByLabel('Postal code').fill('Y1A 2C6');
  await page.getByRole('combobox', { name: 'Country' }).fill('cana');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByLabel('Name', { exact: true }).fill('Ana Okafor');
  await page.getByLabel('E-mail address').fill('ana@example.org');
  await next(page);
  await page.getByLabel('What I have said here is true').check();
  await next(page);
  await page.getByRole('heading', { name: 'Check your answers before you send your form' }).waitFor();
  await expect.poll(() => page.locator('main').textContent()).toContain('October 1, 2026');
  await page.getByRole('button', { name: 'Send the form' }).click();
  await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
  await expect.poll(() => page.locator('.receipt strong').textContent()).toMatch(/^[A-Z0-9]{4}(?:-[A-Z0-9]{4})+$/);
  await page.reload();
  await page.getByRole('heading', { name: 'You have sent this form' }).waitFor();
  expect([...first.complaints, ...second.complaints]).toEqual([]);
});
