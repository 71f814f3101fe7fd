// Tests with a real service that no change is lost if two browsers edit the same draft. The person sees both values
// side by side, and chooses one.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleFormData } from '../../../dev/demo-data/business-licence.ts';
import { type ApplicantWorld, startApplicantWorld } from '../applicant-world.ts';

let world: ApplicantWorld;
beforeAll(async () => {
  world = await startApplicantWorld();
});
afterAll(() => world?.close());

async function startForm(page: Page, email: string): Promise<void> {
  await page.goto(world.urlOf('business-licence'));
  await page.getByLabel('Your email address').fill(email);
  await page.getByRole('button', { name: 'Start now' }).click();
  await page.getByLabel('Name of the business').waitFor();
}

async function enterCode(page: Page, email: string): Promise<void> {
  const code = await world.codeFor(email, () => page.getByRole('button', { name: 'Send me a code by email' }).click());
  await page.getByLabel('Code', { exact: true }).fill(code);
  await page.getByRole('button', { name: 'Open my form' }).click();
}

test('a conflict is shown side by side and resolved by the person; other answers of both browsers are kept', async () => {
  const { page: mine, complaints } = await world.open({ bypassCSP: true });
  const email = 'two@example.org';
  await startForm(mine, email);
  await mine.getByLabel('Name of the business').fill('Old name');
  await mine.locator('[data-state=saved]').waitFor();

  const { page: theirs } = await world.open();
  await theirs.goto(world.urlOf('business-licence', new URL(mine.url()).hash));
  await enterCode(theirs, email);
  await theirs.getByLabel('Name of the business').fill('Their name');
  await theirs.getByLabel('What the business does').fill('Bread');
  await theirs.locator('[data-state=saved]').waitFor();

  await mine.getByLabel('Name of the business').fill('My name');
  await mine.getByLabel('Number of employees').fill('6');
  await mine.getByText('What you have typed is still here.').waitFor();
  // Moves the clock, because an address gets only one code per minute.
  world.apply.forms.advance(61_000);
  await enterCode(mine, email);
  await mine.getByRole('heading', { name: 'Your form was changed in another window' }).waitFor();
  const group = mine.getByRole('group', { name: 'Name of the business' });
  await expect.poll(() => group.locator('strong').allTextContents()).toEqual(['My name', 'Their name']);
  await mine.getByRole('button', { name: 'Keep the chosen answers' }).click();
  await mine.getByRole('link', { name: 'Choose which answer to keep' }).waitFor();
  await group.getByLabel('Your answer here').check();
  await mine.getByRole('button', { name: 'Keep the chosen answers' }).click();
  await mine.locator('[data-state=saved]').waitFor();
  expect([
    await mine.getByLabel('Name of the business').inputValue(),
    await mine.getByLabel('What the business does').inputValue(),
    await mine.getByLabel('Number of employees').inputValue(),
  ]).toEqual(['My name', 'Bread', '6']);
  const { rows } = await world.apply.forms.pool.query('SELECT data FROM forms');
  expect(rows.map(({ data }) => data)).toEqual([{ businessName: 'My name', activity: 'Bread', employees: 6 }]);
  expect(complaints).toEqual([]);
});

test('a form that another browser has changed is not sent before the person has seen the change', async () => {
  const { page: mine, complaints } = await world.open({ bypassCSP: true });
  const email = 'three@example.org';
  await startForm(mine, email);
  const id = /form=([\w-]+)/.exec(mine.url())?.[1] ?? '';
  const { pool } = world.apply.forms;
  await pool.query('UPDATE forms SET data = $2, revision = revision + 1 WHERE id = $1', [id, exampleFormData.complete]);
  await mine.reload();
  await enterCode(mine, email);
  await mine.getByRole('button', { name: 'Check your answers' }).click();
  await mine.getByRole('heading', { name: 'Check your answers' }).waitFor();

  world.apply.forms.advance(61_000);
  const { page: theirs } = await world.open();
  await theirs.goto(world.urlOf('business-licence', `#form=${id}`));
  await enterCode(theirs, email);
  await theirs.getByLabel('Name of the business').fill('Their name');
  await theirs.locator('[data-state=saved]').waitFor();

  await mine.getByRole('button', { name: 'Send the form' }).click();
  await mine.getByText('Some answers were changed in another window.').waitFor();
  await mine.getByText('Their name').waitFor();
  await mine.locator('[data-state=saved]').waitFor();
  await mine.getByRole('button', { name: 'Send the form' }).click();
  await mine.getByRole('heading', { name: 'We have received your form' }).waitFor();
  await mine.getByText('Their name').waitFor();
  expect(complaints).toEqual([]);
});
