// Tests the actions of the console on form definitions.
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults, settled } from '../../console-world.ts';

export function testDefinitions(suite: ConsoleSuite): void {
  it('definitions: a tab that was opened before an update says so, and works after it was loaded again', async () => {
    const page = await suite.open('/definitions');
    await page.route('**/assets/definition-editor-*', (route) => route.fulfill({ status: 404 }));
    await page.getByRole('link', { name: 'Business licence' }).click();
    await page.getByRole('heading', { name: 'The console was updated' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.unroute('**/assets/definition-editor-*');
    await page.getByRole('button', { name: 'Load the page again' }).click();
    await page.getByLabel('Data schema', { exact: true }).waitFor();
  });

  it('definitions: the editor says that there is no connection if the server cannot be reached', async () => {
    const page = await suite.open('/definitions');
    await page.route('**/assets/definition-editor-*', (route) => route.abort());
    await page.route('**/console', (route) => route.abort());
    await page.getByRole('link', { name: 'Business licence' }).click();
    await page.getByRole('heading', { name: 'No connection' }).waitFor();
  });

  it('definitions: create, problems at their place, save, publish, compare, delete', async () => {
    const page = await suite.open('/definitions');
    await page.getByText('Create a form definition').click();
    await page.getByLabel('Id', { exact: true }).fill('dog-licence');
    await page.getByLabel('Name', { exact: true }).fill('Dog licence');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'dog-licence' }).waitFor();
    await settled(page);
    const schema = page.getByLabel('Data schema', { exact: true });
    await schema.fill('{\n  "type": "object",\n  "required": "name"\n}');
    await page.getByRole('button', { name: /Data schema, line 3/ }).click();
    const chosen = 'document.activeElement.value.slice(document.activeElement.selectionStart).split("\\n")[0]';
    expect(await page.evaluate(chosen)).toBe('"name"');
    await expect.poll(() => page.title()).toBe('Error: dog-licence – Formgate console');
    const described =
      'document.activeElement.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id).textContent).join()';
    expect(await page.evaluate(described)).toContain('Error: Data schema, line 3');
    expect(await findFaults(page)).toEqual([]);
    await schema.fill('{\n  "type" "object"\n}');
    await page.getByRole('button', { name: 'Data schema, line 2: A colon is missing' }).waitFor();
    await schema.fill('{"type":"object","properties":{"name":{"type":"string","title":"Name of the dog"}}}');
    await page.getByRole('button', { name: 'Format Data schema' }).click();
    await expect.poll(() => schema.inputValue()).toContain('\n      "title": "Name of the dog"');
    await page.getByLabel('People without an account may apply').check();
    await page.getByLabel('One form for each applicant with an account').uncheck();
    await page.getByLabel('Lock after').fill('P30D');
    await page.getByLabel('Roles of applicants').fill('applicant');
    await settled(page);
    await page.getByText('No problems found.').waitFor();
    await page.getByText('Preview as applicants see it').click();
    await page.getByLabel(/^Name of the dog/).fill('Rex');
    expect(await findFaults(page)).toEqual([]);
    await schema.fill('{"type":"object","properties":{"name":{"type":"string","title":"Name of the cat"}}}');
    await page.getByLabel(/^Name of the cat/).waitFor();
    const save = page.getByRole('button', { name: 'Save', exact: true });
    await save.press('Enter');
    await page.getByText('The definition was saved.').waitFor();
    await page.getByText('You have changes that are not saved.').waitFor({ state: 'detached' });
    await settled(page);
    // A save leaves the focus and the preview as they were.
    await save.and(page.locator(':focus')).waitFor();
    expect(await page.getByLabel(/^Name of the cat/).inputValue()).toBe('Rex');
    await page.getByRole('button', { name: 'Publish', exact: true }).click();
    await page.getByText('Revision 0 is published: forms use it.').waitFor();
    await settled(page);
    await page.getByLabel('Description (optional)').fill('For dogs');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('The definition was saved.').waitFor();
    await page.locator('.line.added').getByText('"description": "For dogs"').waitFor();
    const stored = await suite.world.api(
      'demo-admin',
      'GET',
      '/configuration/v2/configuration/form-service/dog-licence',
    );
    expect(stored).toMatchObject({
      latest: {
        revision: 1,
        configuration: { description: 'For dogs', oneFormPerApplicant: false, retention: { lockAfter: 'P30D' } },
      },
      active: { revision: 0 },
    });
    await page.getByRole('button', { name: 'Publish', exact: true }).click();
    await page.getByText('Revision 1 is published: forms use it.').waitFor();
    await settled(page);
    await page.getByRole('button', { name: 'Use revision 0' }).click();
    await page.getByText('Forms use revision 0.').waitFor();
    await page.getByText('Delete this definition …').click();
    await page.getByLabel('Type dog-licence to confirm').fill('dog-licence');
    await page.getByRole('button', { name: 'Delete this definition' }).click();
    await page.getByText('The form definition dog-licence was deleted.').waitFor();
  });

  it('definitions: the editor shows what was saved, and keeps what is typed while it is saved', async () => {
    const page = await suite.open('/definitions/business-licence');
    const document = '/configuration/v2/configuration/platform/form-service';
    const stored = async () => {
      const { latest } = (await suite.world.api('demo-admin', 'GET', document)) as {
        latest: { configuration: Record<string, { description?: string }> };
      };
      return latest.configuration['business-licence']?.description;
    };
    const description = page.getByLabel('Description (optional)');
    const save = page.getByRole('button', { name: /^Save( with these problems)?$/ });
    const unsaved = page.getByText('You have changes that are not saved.');
    for (const text of ['First', 'Second']) {
      await description.fill(text);
      await save.click();
      await expect.poll(stored).toBe(text);
      await unsaved.waitFor({ state: 'detached' });
      await settled(page);
      await expect.poll(() => description.inputValue()).toBe(text);
    }

    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/configuration/v2/**', async (route) => {
      if (route.request().method() === 'PATCH') await released;
      await route.fallback();
    });
    await description.fill('Third');
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await save.click();
    await sent;
    await description.fill('Third, and more');
    release();
    await expect.poll(stored).toBe('Third');
    await settled(page);
    await expect.poll(() => description.inputValue()).toBe('Third, and more');
    await unsaved.waitFor();
    await save.click();
    await expect.poll(stored).toBe('Third, and more');
    await unsaved.waitFor({ state: 'detached' });
  });

  it('definitions: a page that shows an old revision does not publish, and forms stay at the new one', async () => {
    const document = '/configuration/v2/configuration/form-service/cat-licence';
    const { api } = suite.world;
    const change = (method: string, body: object) => api('demo-admin', method, document, body);
    const replace = (description: string) => {
      const rest = { anonymousApply: false, applicantRoles: [] };
      const configuration = { id: 'cat-licence', name: 'Cat licence', description, ...rest };
      return change('PATCH', { operation: 'REPLACE', configuration });
    };
    const stateOf = (latest: number, active: number) => ({
      latest: { revision: latest },
      active: { revision: active },
    });
    await replace('For cats');
    const page = await suite.open('/definitions/cat-licence');
    await page.getByText('Freezes what is saved as revision 0').waitFor();
    for (const revision of [0, 1]) {
      await replace(`For cats, ${revision}`);
      await change('POST', { operation: 'CREATE-REVISION' });
      await change('POST', { operation: 'SET-ACTIVE-REVISION', revision });
    }
    const publish = page.getByRole('button', { name: 'Publish', exact: true });
    await publish.click();
    await page.getByText('Somebody has changed or published this definition').waitFor();
    expect(await findFaults(page)).toEqual([]);
    expect(await api('demo-admin', 'GET', document)).toMatchObject(stateOf(2, 1));
    await page.reload();
    await page.getByText('Freezes what is saved as revision 2').waitFor();
    await publish.click();
    await page.getByText('Revision 2 is published: forms use it.').waitFor();
    expect(await api('demo-admin', 'GET', document)).toMatchObject(stateOf(3, 2));
    await api('demo-admin', 'DELETE', document);
  });

  it('definitions: a change by somebody else is noticed before it is overwritten', async () => {
    const page = await suite.open('/definitions/business-licence');
    await page.getByText('Preview as applicants see it').click();
    // The preview shows a menu of the register of countries. It reads the register with the administrator's rights.
    await page
      .getByRole('combobox', { name: /^Country/ })
      .first()
      .waitFor();
    const description = page.getByLabel('Description (optional)');
    const refused = page.getByText('Somebody has changed this definition');
    const document = '/configuration/v2/configuration/platform/form-service';
    const change = (text: string) => {
      const update = { 'business-licence': { description: text } };
      return suite.world.api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update });
    };
    await description.fill('Mine');
    await change('Theirs');
    await page.getByRole('button', { name: /^Save/ }).click();
    await refused.waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Discard them' }).click();
    await expect.poll(() => description.inputValue()).toBe('Theirs');
    await refused.waitFor({ state: 'detached' });
    await description.fill('Mine');
    await change('Theirs again');
    await page.getByRole('button', { name: /^Save/ }).click();
    await refused.waitFor();
    await page.getByRole('button', { name: 'Replace that change with mine' }).click();
    await page.getByText('The definition was saved').waitFor();
    const stored = await suite.world.api('demo-admin', 'GET', document);
    expect(stored).toMatchObject({ latest: { configuration: { 'business-licence': { description: 'Mine' } } } });
  });
}
