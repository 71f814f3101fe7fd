// Tests the actions of the console on form definitions.
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults, settled } from '../../console-world.ts';

export function testDefinitions(suite: ConsoleSuite): void {
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
    expect(await findFaults(page)).toEqual([]);
    await schema.fill('{\n  "type" "object"\n}');
    await page.getByRole('button', { name: 'Data schema, line 2: A colon is missing' }).waitFor();
    await schema.fill('{"type":"object","properties":{"name":{"type":"string","title":"Name of the dog"}}}');
    await page.getByRole('button', { name: 'Format Data schema' }).click();
    await expect.poll(() => schema.inputValue()).toContain('\n      "title": "Name of the dog"');
    await page.getByLabel('People without an account may apply').check();
    await page.getByLabel('One form for each applicant with an account').check();
    await page.getByLabel('Lock after').fill('P30D');
    await page.getByLabel('Roles of applicants').fill('applicant');
    await settled(page);
    await page.getByText('No problems found.').waitFor();
    await page.getByText('Preview as applicants see it').click();
    await page.getByLabel(/^Name of the dog/).fill('Rex');
    expect(await findFaults(page)).toEqual([]);
    await schema.fill('{"type":"object","properties":{"name":{"type":"string","title":"Name of the cat"}}}');
    await page.getByLabel(/^Name of the cat/).waitFor();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('The definition was saved.').waitFor();
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
      latest: { revision: 1, configuration: { description: 'For dogs', retention: { lockAfter: 'P30D' } } },
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

  it('definitions: a change by somebody else is noticed before it is overwritten', async () => {
    const page = await suite.open('/definitions/business-licence');
    await page.getByText('Preview as applicants see it').click();
    // The preview shows a menu of the register of countries, which is read with the administrator's rights.
    await page
      .getByRole('combobox', { name: /^Country/ })
      .first()
      .waitFor();
    await page.getByLabel('Description (optional)').fill('Mine');
    const update = { 'business-licence': { description: 'Theirs' } };
    const document = '/configuration/v2/configuration/platform/form-service';
    await suite.world.api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update });
    await page.getByRole('button', { name: /^Save/ }).click();
    await page.getByText('Somebody has changed this definition').waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Replace that change with mine' }).click();
    await page.getByText('The definition was saved').waitFor();
    const stored = await suite.world.api('demo-admin', 'GET', document);
    expect(stored).toMatchObject({ latest: { configuration: { 'business-licence': { description: 'Mine' } } } });
  });
}
