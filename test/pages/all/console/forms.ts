// Tests the actions of the console on forms.
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';

export function testForms(suite: ConsoleSuite): void {
  it('forms: unlock, return to draft, archive, history', async () => {
    const id = await suite.world.form();
    await suite.world.pool.query("UPDATE forms SET status = 'Locked', locked = now() WHERE id = $1", [id]);
    const page = await suite.open(`/forms/${id}`);
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
    expect(await page.getByText('you, as an administrator').count()).toBe(3);
  });

  it('forms: filters are in the address of the page, an applicant’s address is not', async () => {
    const page = await suite.open('/forms');
    await page.getByLabel('Status').selectOption('draft');
    await page.getByLabel('Definition').selectOption('business-licence');
    await page.getByLabel('Applicant’s address').fill('ana@example.org');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/status=draft/);
    expect(page.url()).toContain('definition=business-licence');
    expect(decodeURIComponent(page.url())).not.toContain('ana@');
    await page.getByText('This list as a curl command').click();
    await page.getByText('X-Applicant-Address: ana@example.org').waitFor();
    await page.getByRole('link', { name: suite.formId }).waitFor();
  });
}
