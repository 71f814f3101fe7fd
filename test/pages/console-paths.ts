// Tests the paths through the console that people take most. The tests begin and end without a session.
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ConsoleSuite } from './console-suite.ts';
import { enterPassword, findFaults, settled } from './console-world.ts';

const hostile = '<img src=x onerror="document.title=1"><script>alert(1)</script>';

export function testPaths(suite: ConsoleSuite): void {
  it('a person who is not signed in is asked to, and returns to the page that they opened', async () => {
    const page = await suite.open('/forms?status=draft');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('link', { name: 'Sign in' }).click();
    await enterPassword(page);
    await page.getByRole('heading', { name: 'Forms' }).waitFor();
    expect(page.url()).toBe(`${suite.world.url}/console/demo/forms?status=draft`);
    expect(await findFaults(page)).toEqual([]);
  });

  describe('a form', () => {
    it('is found, and its data is shown under the labels of its definition, as text', async () => {
      const id = await suite.world.form({ businessName: hostile, servesFood: true, [hostile]: hostile });
      const page = await suite.open('/forms');
      await page.getByRole('link', { name: id }).click();
      await page.getByText('Draft', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Show data' }).click();
      await page.getByText('Name of the business').waitFor();
      await expect.poll(() => page.getByText(hostile, { exact: true }).count()).toBe(3);
      await expect.poll(() => page.locator('img, script:not([type=module])').count()).toBe(0);
      await expect.poll(() => page.title()).not.toBe('1');
      expect(await findFaults(page)).toEqual([]);
    });

    it('on hold without a reason says who put it on hold, and that no reason was given', async () => {
      const id = await suite.world.form();
      await suite.world.api('demo-admin', 'POST', `/form/v1/forms/${id}`, { operation: 'hold' });
      const page = await suite.open(`/forms/${id}`);
      const hold = page.locator('dt', { hasText: /^On hold/ }).locator('+ dd');
      await expect.poll(() => hold.textContent()).toMatch(/^by .+, no reason given$/);
      expect(await page.locator('main').textContent()).not.toMatch(/1970|null/);
    });

    it('is put on hold with a reason, released, and deleted after its last characters were typed', async () => {
      const id = await suite.world.form();
      const page = await suite.open(`/forms/${id}`);
      await page.getByRole('button', { name: 'Put on hold' }).click();
      const summary = page.getByRole('alert').and(page.locator(':focus'));
      await summary.getByRole('link', { name: 'Enter a reason' }).waitFor();
      await expect.poll(() => page.title()).toBe(`Error: Form ${id} – Formgate console`);
      await page.getByLabel('Put on hold: reason').fill('Under appeal');
      await expect.poll(() => page.getByText('Put on hold as a curl command').count()).toBe(1);
      await page.getByRole('button', { name: 'Put on hold' }).click();
      await page.getByText('by Ada Admin, Under appeal').waitFor();
      await page.locator('.done:focus', { hasText: 'The form is on hold.' }).waitFor();
      await expect.poll(() => page.title()).toBe(`Form ${id} – Formgate console`);
      await expect.poll(() => page.getByText('cannot be deleted').count()).toBe(1);
      await page.getByRole('button', { name: 'Release' }).click();
      await page.getByText('The form is no longer on hold.').waitFor();
      await page.getByText('Delete this form …').click();
      await page.getByRole('button', { name: 'Delete this form' }).click();
      await page.getByRole('textbox', { name: `Type ${id.slice(-6)}` }).fill(id.slice(-6));
      await page.getByRole('button', { name: 'Delete this form' }).click();
      await page.getByText(`Form ${id} was deleted.`).waitFor();
    });
  });

  describe('the session', () => {
    // Sign in again if an earlier test has ended the session.
    beforeEach(async () => {
      const page = await suite.open('/sessions');
      if (await page.getByRole('link', { name: /^Sign in/ }).isVisible()) {
        await page.getByRole('link', { name: /^Sign in/ }).click();
        await enterPassword(page);
      }
    });

    it('that ends while a person types is announced, and what they typed is there after the sign-in', async () => {
      const page = await suite.open('/definitions/business-licence');
      await page.getByLabel('Description (optional)').fill('A new description');
      await endSession(suite, page);
      const ended = page.getByRole('heading', { name: 'Your session has ended' });
      const save = page.getByRole('button', { name: 'Save', exact: false }).first();
      // A request of the page may notice the end of the session before the click, and the button then disappears.
      await Promise.race([save.click().then(() => ended.waitFor()), ended.waitFor()]);
      await page.getByText('Form definition business-licence').waitFor();
      await page.locator('h1:focus').waitFor();
      expect(await findFaults(page)).toEqual([]);
      await page.getByRole('link', { name: 'Sign in again' }).click();
      await page.locator('#username, button:has-text("Sign out")').first().waitFor();
      if (await page.locator('#username').isVisible()) await enterPassword(page);
      await settled(page);
      await expect.poll(() => page.getByLabel('Description (optional)').inputValue()).toBe('A new description');
      await page.getByRole('button', { name: 'Discard them' }).click();
      await expect.poll(() => page.getByLabel('Description (optional)').inputValue()).not.toBe('A new description');
    });

    it('is about to end: a dialog says so, and Escape means stay', async () => {
      const page = await suite.context.newPage();
      onTestFinished(() => page.close());
      let isEnding = true;
      // The test changes only the reported expiry; the session itself does not end.
      await page.route('**/token-handler/sessions', async (route) => {
        const response = await route.fetch();
        if (!response.ok()) return route.fulfill({ response });
        const sessions = (await response.json()) as Record<string, unknown>[];
        const expiry = new Date(Date.now() + 90_000).toISOString();
        await route.fulfill({ response, json: sessions.map((one) => (isEnding ? { ...one, expiry } : one)) });
      });
      await page.goto(`${suite.world.url}/console/demo/sessions`);
      await page.getByRole('alertdialog', { name: 'Your session ends in 2 minutes' }).waitFor();
      expect(await findFaults(page)).toEqual([]);
      isEnding = false;
      await page.keyboard.press('Escape');
      await page.getByRole('alertdialog').waitFor({ state: 'detached' });
      await expect.poll(() => page.getByRole('heading', { name: 'Your sessions' }).count()).toBe(1);
    });

    it('cannot be extended: the dialog closes all the same, says so, and the work can be saved before the end', async () => {
      const page = await suite.context.newPage();
      onTestFinished(() => page.close());
      const end = Date.now() + 115_000;
      let reads = 0;
      // The identity provider limits the session, so the reported expiry moves by no more than rounding.
      await page.route('**/token-handler/sessions', async (route) => {
        const response = await route.fetch();
        if (!response.ok()) return route.fulfill({ response });
        const sessions = (await response.json()) as Record<string, unknown>[];
        reads += 1;
        const expiry = new Date(end + reads).toISOString();
        await route.fulfill({ response, json: sessions.map((one) => ({ ...one, expiry })) });
      });
      await page.goto(`${suite.world.url}/console/demo/forms`);
      const dialog = page.getByRole('alertdialog');
      await dialog.getByRole('button', { name: 'Stay signed in' }).click();
      await page.getByText('The session could not be extended').waitFor();
      expect(await findFaults(page)).toEqual([]);
      await page.getByLabel('Status').selectOption('draft');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.waitForURL(/status=draft/);
      expect(await dialog.count()).toBe(0);
      expect(reads).toBeGreaterThan(1);
    });

    it('is never readable as a token: not in a cookie, not in storage', async () => {
      const page = await suite.open('/sessions');
      await settled(page);
      const readable = await page.evaluate<string>(
        'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])',
      );
      expect(readable).toMatch(/XSRF-TOKEN=/);
      expect(readable.replace(/XSRF-TOKEN=[\w.%-]+/, '')).not.toMatch(/eyJ|token["=]|session["=]/i);
    });

    it('ends in all tabs when a person signs out in one', async () => {
      const [one, other] = [await suite.open('/registers'), await suite.open('/forms')];
      await other.getByRole('heading', { name: 'Forms' }).waitFor();
      await one.getByRole('button', { name: 'Sign out' }).click();
      await other.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
      await one.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
      const status = await other.evaluate(async () => (await fetch('/token-handler/sessions')).status);
      expect(status).toBe(401);
    });
  });

  it('a person without a role sees which one is needed', async () => {
    const other = await suite.world.context();
    onTestFinished(() => other.close());
    const page = await suite.world.signIn(other, '/registers', 'alice');
    await page.getByText('you need the role form-admin').waitFor();
    expect(await findFaults(page)).toEqual([]);
  });
}

/** Ends the session at the token handler, as an administrator elsewhere would. */
export async function endSession({ world }: ConsoleSuite, page: Page): Promise<void> {
  const sessions = await page.evaluate(async () => (await fetch('/token-handler/sessions')).json());
  const [{ id }] = sessions as [{ id: string }];
  await world.api('demo-admin', 'DELETE', `/token-handler/v1/sessions/${id}`);
}
