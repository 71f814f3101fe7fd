// Tests the actions of the console on forms.
import { expect, it, onTestFinished } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults } from '../../console-world.ts';

export function testForms(suite: ConsoleSuite): void {
  it('forms: unlock, return to draft, archive, history', async () => {
    const id = await suite.world.form();
    await suite.world.pool.query("UPDATE forms SET status = 'Locked', locked = now() WHERE id = $1", [id]);
    const page = await suite.open(`/forms/${id}`);
    await page.getByRole('link', { name: 'Business licence', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Unlock' }).click();
    await page.getByText('The form is a draft again.').waitFor();
    await suite.world.pool.query("UPDATE forms SET status = 'Submitted', submitted = now() WHERE id = $1", [id]);
    await page.reload();
    await page.getByRole('button', { name: 'Return to draft' }).click();
    await page.getByText('The form is a draft again.').waitFor();
    await suite.world.pool.query("UPDATE forms SET status = 'Submitted', submitted = now() WHERE id = $1", [id]);
    await page.reload();
    await page.getByRole('button', { name: 'Archive' }).click();
    await page.getByText('The form is archived.').waitFor();
    for (const text of ['Created', 'Unlocked', 'Returned to draft', 'Archived'])
      await page.getByRole('rowheader', { name: text, exact: true }).waitFor();
    await expect.poll(() => page.getByText('you, as an administrator').count()).toBe(3);
  });

  it('forms: filters are in the address of the page, an applicant’s address is not', async () => {
    const page = await suite.open('/forms');
    await page.getByLabel('Status').selectOption('draft');
    await page.getByLabel('Definition').selectOption('business-licence');
    await page.getByLabel('Applicant’s address').fill('ana@example.org');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/status=draft/);
    await page.getByRole('button', { name: 'Search' }).and(page.locator(':focus')).waitFor();
    expect(page.url()).toContain('definition=business-licence');
    expect(decodeURIComponent(page.url())).not.toContain('ana@');
    await page.getByText('This list as a curl command').click();
    await page.getByText('X-Applicant-Address: ana@example.org').waitFor();
    await page.getByRole('link', { name: suite.formId }).waitFor();
  });

  it('forms: the filter takes the id of a definition if the list lacks some definitions', async () => {
    const page = await suite.context.newPage();
    onTestFinished(() => page.close());
    // The service cuts the list off after a thousand definitions.
    await page.route('**/form/v1/definitions', async (route) => {
      const response = await route.fetch();
      const list = (await response.json()) as { results: unknown[] };
      await route.fulfill({ response, json: { results: list.results.slice(0, 1), truncated: true } });
    });
    await page.goto(`${suite.world.url}/console/demo/forms`);
    await page.getByLabel('Id of the definition').fill(' permit ');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/definition=permit$/);
    await page.getByText('No form matches.').waitFor();
    expect(await findFaults(page)).toEqual([]);
  });

  it('forms: days of the filter begin at midnight in the time zone of the browser, as the listed times do', async () => {
    const storageState = await suite.context.storageState();
    const edmonton = await suite.world.context({ timezoneId: 'America/Edmonton', storageState });
    onTestFinished(() => edmonton.close());
    const page = await suite.open('/forms', edmonton);
    await page.getByLabel('Created on or after').fill('2026-03-08');
    await page.getByLabel('Created before').fill('2026-03-09');
    const asked = page.waitForRequest(/\/form\/v1\/forms\?.*createDateAfter/);
    await page.getByRole('button', { name: 'Search' }).click();
    const { searchParams } = new URL((await asked).url());
    // Daylight saving time began on March 8, so this day has 23 hours.
    expect(JSON.parse(searchParams.get('criteria') ?? '')).toEqual({
      createDateAfter: '2026-03-08T07:00:00.000Z',
      createDateBefore: '2026-03-09T06:00:00.000Z',
    });
  });

  it('forms: a refused address is announced, and the results are hidden', async () => {
    const page = await suite.open('/forms');
    await page.getByLabel('Applicant’s address').fill('ana');
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await page.getByRole('button', { name: 'Search' }).click();
      const summary = page.getByRole('alert').and(page.locator(':focus'));
      await summary.getByRole('link', { name: 'Enter one complete email address or telephone number' }).waitFor();
    }
    await expect.poll(() => page.title()).toBe('Error: Forms – Formgate console');
    expect(await findFaults(page)).toEqual([]);
  });

  it('forms: the focus moves to the data that is shown, and to the text about an action without its button', async () => {
    const page = await suite.open(`/forms/${await suite.world.form()}`);
    await page.getByRole('button', { name: 'Show data' }).press('Enter');
    await page.locator('#data-title:focus').waitFor();
    await page.getByLabel('Put on hold: reason').fill('Under appeal');
    await page.getByLabel('Put on hold: reason').press('Tab');
    await page.keyboard.press('Enter');
    const done = page.locator('.done:focus');
    await done.getByText('The form is on hold.').waitFor();
    expect(await page.evaluate('document.querySelector(".done").getBoundingClientRect().top')).toBeGreaterThanOrEqual(
      0,
    );
    await page.getByRole('button', { name: 'Release' }).press('Enter');
    await done.getByText('The form is no longer on hold.').waitFor();
  });

  it('forms: a full history shows where entries may be missing', async () => {
    const id = await suite.world.form();
    const at = (index: number) => new Date(Date.now() + index * 1_000).toISOString();
    const rows = Array.from({ length: 100 }, (_, index) => [index < 20 ? 'held' : 'released', at(index), 'admin']);
    await suite.world.pool.query('UPDATE forms SET history = $2 WHERE id = $1', [id, JSON.stringify(rows)]);
    const page = await suite.open(`/forms/${id}`);
    await page.getByText('This history is full: a form keeps its first 20 entries and its latest 80.').waitFor();
    const history = page.getByRole('region', { name: 'Table: History, oldest first' });
    const events = await history.getByRole('rowheader').allTextContents();
    expect(events).toEqual([
      'Created',
      ...Array(20).fill('Put on hold'),
      'Entries may be missing here',
      ...Array(80).fill('Released'),
    ]);
    expect(await findFaults(page)).toEqual([]);
  });

  it('forms: a list of more than 25 has pages, and “Clear” empties the filter', async () => {
    for (let count = 0; count < 51; count += 1) await suite.world.form();
    const page = await suite.open('/forms?status=draft');
    const first = await page.getByRole('rowheader').allTextContents();
    expect(first).toHaveLength(25);
    await page.getByText(/^1–25 of \d+ forms$/).waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.locator('[role=status]:focus', { hasText: /^26–50 of \d+ forms$/ }).waitFor();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    const second = await page.getByRole('rowheader').allTextContents();
    expect(second.length).toBeGreaterThan(0);
    expect(second.filter((id) => first.includes(id))).toEqual([]);
    expect(await findFaults(page)).toEqual([]);
    // The way back from a form leads to the page of the list on which its link was.
    await page.getByRole('link', { name: second[0] ?? '' }).click();
    await page.getByRole('heading', { name: `Form ${second[0]}` }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Forms', exact: true }).click();
    await expect.poll(() => page.getByRole('rowheader').allTextContents()).toEqual(second);
    await page.getByRole('link', { name: 'Next page' }).click();
    await expect.poll(() => page.getByRole('rowheader').allTextContents()).not.toEqual(second);
    await page.getByRole('link', { name: 'Previous page' }).click();
    await expect.poll(() => page.getByRole('rowheader').allTextContents()).toEqual(second);
    await page.locator('[role=status]:focus', { hasText: /^26–50 of \d+ forms$/ }).waitFor();
    await page.getByRole('link', { name: 'Previous page' }).click();
    await expect.poll(() => page.getByRole('rowheader').allTextContents()).toEqual(first);
    expect(await page.getByRole('link', { name: 'Previous page' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'First page' }).click();
    await page.getByRole('link', { name: 'First page' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.waitForURL(/\/forms$/);
    await expect.poll(() => page.getByLabel('Status').inputValue()).toBe('');
  });

  it('forms: a list that could not be loaded is loaded by “Try again”', async () => {
    const page = await suite.context.newPage();
    onTestFinished(() => page.close());
    await page.route('**/form/v1/forms?*', (route) => route.abort());
    await page.goto(`${suite.world.url}/console/demo/forms`);
    await page.getByText('The service cannot be reached.', { exact: false }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.unroute('**/form/v1/forms?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page
      .getByRole('link', { name: suite.formId })
      .or(page.getByText(/forms$/))
      .first()
      .waitFor();
  });

  it('forms: a curl command is copied', async () => {
    await suite.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: suite.world.url });
    const page = await suite.open('/forms');
    await page.getByText('This list as a curl command').click();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^curl "\$FORMGATE_URL"'\/form\/v1\/forms\?/);
  });
}
