// Tests in a browser that an applicant can delete the draft and its data. This requires a confirmation, and a code that
// was entered in this browser.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApplicantWorld, faultsOf, startApplicantWorld } from '../applicant-world.ts';

let world: ApplicantWorld;
beforeAll(async () => {
  world = await startApplicantWorld();
});
afterAll(() => world?.close());

test.each([
  ['light', 1000],
  ['dark', 320],
] as const)(
  'a draft is deleted with its data after a question and a code, in %s at %i pixels',
  async (colorScheme, width) => {
    const { page, complaints } = await world.open({ bypassCSP: true, colorScheme, viewport: { width, height: 700 } });
    const email = `${randomUUID()}@example.org`;
    await page.goto(world.urlOf('business-licence'));
    await page.getByLabel('Your email address').fill(email);
    await page.getByRole('button', { name: 'Start now' }).click();
    await page.getByLabel('Name of the business').fill('Northern Lights Bakery');
    await page.locator('[data-state=saved]').waitFor();
    const id = new URLSearchParams(new URL(page.url()).hash.slice(1)).get('form') ?? '';

    await page.getByRole('button', { name: 'Delete this draft' }).click();
    await page.getByRole('heading', { name: 'Do you want to delete your draft?' }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'No, keep my draft' }).click();
    await expect.poll(() => page.getByLabel('Name of the business').inputValue()).toBe('Northern Lights Bakery');

    await page.getByRole('button', { name: 'Delete this draft' }).click();
    await page.getByRole('button', { name: 'Yes, delete my draft' }).click();
    await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
    expect(await rowsOf(id)).toBe(1);
    const code = await world.codeFor(email, () =>
      page.getByRole('button', { name: 'Send me a code by email' }).click(),
    );
    await page.getByLabel('Code', { exact: true }).fill(code);
    await page.getByRole('button', { name: 'Open my form' }).click();
    await page.getByRole('button', { name: 'Yes, delete my draft' }).click();
    await page.getByRole('heading', { name: 'Your draft is deleted' }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    expect(await rowsOf(id)).toBe(0);
    expect(page.url()).not.toContain(id);
    expect(complaints).toEqual([]);
  },
);

async function rowsOf(id: string): Promise<number> {
  const { rowCount } = await world.apply.forms.pool.query('SELECT 1 FROM forms WHERE id = $1', [id]);
  return rowCount ?? 0;
}
