// Tests the actions of the console on sessions, and signing in and out.
import { expect, it, onTestFinished } from 'vitest';
import { createSiteBrowser } from '../../../support/site-browser.ts';
import { endSession } from '../../console-paths.ts';
import type { ConsoleSuite } from '../../console-suite.ts';
import { enterPassword, findFaults, settled } from '../../console-world.ts';

export function testSessions(suite: ConsoleSuite): void {
  it('sessions: an administrator ends the session of another person, and another one of their own', async () => {
    const other = await suite.world.context();
    onTestFinished(() => other.close());
    await suite.world.signIn(other, '/sessions', 'alice');
    const page = await suite.open('/sessions');
    await page.getByRole('button', { name: /End the session of Alice/ }).click();
    // The list no longer contains the pressed button.
    await page.locator('.done:focus', { hasText: 'The session of Alice Applicant has ended.' }).waitFor();

    const elsewhere = await suite.world.context();
    onTestFinished(() => elsewhere.close());
    await suite.world.signIn(elsewhere, '/sessions');
    await page.reload();
    const own = page.getByRole('region', { name: 'Your sessions', exact: true });
    const ofAda = { name: /End the session of Ada/ };
    await own.getByRole('button', ofAda).first().waitFor();
    await settled(page);
    const shown = () => Promise.all([own, page].map((part) => part.getByRole('button', ofAda).count()));
    const [inOwn = 0, inBoth = 0] = await shown();
    await own.getByRole('button', ofAda).first().click();
    await page.getByText('The session of Ada Admin has ended.').waitFor();
    // The list of the tenant contains the person's own sessions too.
    await expect.poll(shown).toEqual([inOwn - 1, inBoth - 2]);
  });

  it('sessions: a list of more than 25 has pages', async () => {
    for (let count = 0; count < 25; count += 1) await signInWithoutPages(suite.world.url);
    const page = await suite.open('/sessions');
    const rows = page.getByRole('region', { name: 'Table: Sessions of the tenant' }).getByRole('rowheader');
    await expect.poll(() => rows.count()).toBe(25);
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.locator('[role=status]:focus', { hasText: /^\d+ sessions? on this page$/ }).waitFor();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await expect.poll(() => rows.count()).toBeGreaterThan(0);
    await expect.poll(() => rows.count()).toBeLessThan(25);
    expect(await findFaults(page)).toEqual([]);
    await page.goBack();
    await expect.poll(() => rows.count()).toBe(25);
    await page.goForward();
    await page.getByRole('link', { name: 'First page' }).click();
    await expect.poll(() => rows.count()).toBe(25);
  });

  it('a person chooses the tenant, and one who is signed in to another tenant signs out of it', async () => {
    const context = await suite.world.context();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`${suite.world.url}/console`);
    await page.getByRole('button', { name: 'Continue' }).click();
    const summary = page.getByRole('alert').and(page.locator(':focus'));
    await summary.getByRole('link', { name: 'Enter the realm or name of the tenant' }).waitFor();
    await expect.poll(() => page.title()).toBe('Error: Which tenant? – Formgate console');
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel('Realm or name of the tenant').fill('demo');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(/\/console\/demo/);
    await page.locator('h1:focus', { hasText: 'Sign in to the console' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await enterPassword(page);
    await page.goto(`${suite.world.url}/console/other`);
    await page.getByRole('heading', { name: 'You are signed in to another tenant' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  });

  it('an operator of the realm core reads why there is no sign-in, and which calls to make', async () => {
    const context = await suite.world.context();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`${suite.world.url}/console/core`);
    await page.getByRole('heading', { name: 'The console is for the administrators of tenants' }).waitFor();
    await expect.poll(() => page.getByRole('link', { name: /Sign in/ }).count()).toBe(0);
    await page.getByText('Operations of all tenants as a curl command').click();
    const command = await page.locator('details[open] code').first().textContent();
    expect(command).toContain("'/form/v1/operations'");
    expect(await findFaults(page)).toEqual([]);
    // The API call in this command works with a token of the realm `core`.
    const all = (await suite.world.coreApi('/form/v1/operations')) as { scope: string };
    expect(all.scope).toBe('all');
  });

  it('a browser that forbids its storage shows the page for the tenant all the same', async () => {
    const context = await suite.world.context();
    onTestFinished(() => context.close());
    await context.addInitScript(
      'delete Window.prototype.localStorage; Object.defineProperty(window, "localStorage", { get() { throw new Error("forbidden"); } })',
    );
    const page = await context.newPage();
    await page.goto(`${suite.world.url}/console`);
    await page.getByLabel('Realm or name of the tenant').fill('demo');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  });

  it('a text that is too large to be kept is not said to be kept', async () => {
    const context = await suite.world.context();
    onTestFinished(() => context.close());
    const page = await suite.world.signIn(context, '/registers/countries');
    // Fills the storage to the last character.
    await page.evaluate(`for (let size = 2 ** 22, count = 0; size >= 1; count += 1)
      try { sessionStorage.setItem('filler ' + count, 'x'.repeat(size)); } catch { size = Math.floor(size / 2); }`);
    await page.getByLabel('Table with a header').fill('value,label\n');
    await endSession(suite, page);
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('Not everything that you typed could be kept').waitFor();
    await expect.poll(() => page.getByText('CSV table for the register').count()).toBe(0);
    expect(await findFaults(page)).toEqual([]);
  });

  it('the session cannot be read: the page says so, and “Try again” reads it again', async () => {
    const page = await suite.context.newPage();
    onTestFinished(() => page.close());
    await page.route('**/token-handler/sessions', (route) => route.abort());
    await page.goto(`${suite.world.url}/console/demo`);
    await page.getByRole('heading', { name: 'The console cannot be reached' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.unroute('**/token-handler/sessions');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Demo' }).waitFor();
  });
}

/** Signs in to the console by plain HTTP requests, without loading the console's pages. */
async function signInWithoutPages(site: string): Promise<void> {
  const browser = createSiteBrowser();
  const client = `${site}/token-handler/clients/formgate-console`;
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${client}/callback`, returnTo: '/console/demo' });
  const form = await browser.follow(await browser.request(`${client}/auth?${query}`));
  const answer = await browser.submit(form, { username: 'alice@example.com', password: 'alice' });
  const { location } = await browser.follow(answer, ({ pathname }) => pathname.startsWith('/console/'));
  expect(location?.pathname).toBe('/console/demo');
}
