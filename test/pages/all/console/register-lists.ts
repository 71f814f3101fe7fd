// Tests the lists of the console about registers: all registers, revisions, references and pages.
import { expect, it } from 'vitest';
import { createUrns } from '../../../../src/service/urn.ts';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults, settled } from '../../console-world.ts';
import { createRegister } from './registers.ts';

export function testRegisterLists(suite: ConsoleSuite): void {
  it('registers: earlier revisions are shown page by page, and can be pinned', async () => {
    await createRegister(suite, 'rivers', '', [{ value: 'bow' }]);
    for (let kept = 0; kept < 41; kept += 1)
      await suite.world.api('demo-admin', 'POST', '/form/v1/registers/rivers/revisions', {});
    const page = await suite.open('/registers/rivers');
    // The active revision, here the latest, has no button to pin it.
    const rows = page.getByRole('button', { name: /^Pin revision/ });
    const more = page.getByRole('button', { name: 'Show earlier revisions' });
    for (const shown of [9, 19, 29, 39]) {
      await expect.poll(() => rows.count()).toBe(shown);
      await more.click();
    }
    await page.getByRole('button', { name: 'Pin revision 0' }).waitFor();
    expect(await rows.count()).toBe(41);
    expect(await more.count()).toBe(0);
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Pin revision 0' }).click();
    await page.getByText('Revision 0 is pinned').waitFor();
  });

  it('registers: a comparison is shown only with the revisions that were compared', async () => {
    await createRegister(suite, 'hills', '', [{ value: 'tun' }]);
    await suite.world.api('demo-admin', 'POST', '/form/v1/registers/hills/revisions', {});
    await suite.world.api('demo-admin', 'PUT', '/form/v1/registers/hills/entries/nor', { value: 'nor' });
    const page = await suite.open('/registers/hills');
    const result = page.getByText('1 added, 0 changed, 0 removed');
    const from = page.getByLabel('Compare', { exact: true });
    await page.getByRole('button', { name: 'Compare' }).click();
    await result.waitFor();
    await from.selectOption('Revision 1');
    await result.waitFor({ state: 'detached' });
    // The response arrives after another selection.
    await page.route('**/changes?*', async (route) => {
      const response = await route.fetch();
      await from.selectOption('Revision 1');
      await route.fulfill({ response });
    });
    await from.selectOption('Revision 0');
    const answer = page.waitForResponse(/\/changes\?/);
    await page.getByRole('button', { name: 'Compare' }).click();
    await (await answer).finished();
    await page.getByRole('button', { name: 'Compare', disabled: false }).waitFor();
    expect(await result.count()).toBe(0);
    await from.selectOption('Revision 0');
    await result.waitFor();
  });

  it('registers: a search ignores accents and names of members, and the last page keeps the focus', async () => {
    const entries = Array.from({ length: 51 }, (_, index) => ({
      value: `v${index}`,
      label: index === 0 ? 'Éducation' : 'x',
    }));
    await createRegister(suite, 'sectors', '', entries);
    const page = await suite.open('/registers/sectors');
    const search = page.getByLabel('Search in the entries');
    await search.fill('education');
    await page.getByText('1 of 51 entries').waitFor();
    await search.fill('label');
    await page.getByText('0 of 51 entries').waitFor();
    await search.fill('');
    const next = page.getByRole('button', { name: 'Next', exact: true });
    for (let press = 0; press < 2; press += 1) await next.press('Enter');
    await page
      .getByRole('status')
      .filter({ hasText: /^51 to 51 of 51$/ })
      .waitFor();
    await next.and(page.locator(':focus')).waitFor();
  });

  it('registers: references are listed at the register, and those to a missing one in the list', async () => {
    const page = await suite.open('/registers/countries');
    const references = page.getByRole('region', { name: 'References', exact: true });
    await references.getByRole('link', { name: 'Business licence' }).first().waitFor();
    await expect.poll(() => references.getByRole('cell').first().textContent()).toBe('countries');
    await references.getByRole('link', { name: 'Business licence' }).first().click();
    await page.getByRole('heading', { name: 'business-licence', level: 1 }).waitFor();

    const uiSchema = {
      type: 'Control',
      scope: '#/properties/port',
      options: {
        register: { urn: createUrns('urn:example').register('nowhere') },
      },
    };
    const configuration = { id: 'lost', name: 'Lost', anonymousApply: false, applicantRoles: [], uiSchema };
    const dataSchema = { type: 'object', properties: { port: { type: 'string' } } };
    await suite.world.api('demo-admin', 'PATCH', '/configuration/v2/configuration/form-service/lost', {
      operation: 'REPLACE',
      configuration: { ...configuration, dataSchema },
    });
    const list = await suite.open('/registers');
    const dead = list.getByRole('region', { name: 'References to registers that do not exist' });
    await dead.getByRole('link', { name: 'Lost' }).waitFor();
    await expect.poll(() => dead.getByRole('cell').first().textContent()).toBe('nowhere');
    expect(await findFaults(list)).toEqual([]);
    await suite.world.api('demo-admin', 'DELETE', '/configuration/v2/configuration/form-service/lost');
  });

  it('registers: the list shows how many entries each has, whether they are texts or objects', async () => {
    await createRegister(suite, 'two-texts', '', ['one', 'two']);
    await createRegister(suite, 'two-objects', '', [{ value: 'one' }, { value: 'two' }]);
    const page = await suite.open('/registers');
    for (const name of ['two-texts', 'two-objects'])
      expect(await page.getByRole('row', { name }).getByRole('cell').last().textContent()).toBe('2');
  });

  it('registers: a search for references that was cut off does not claim to be complete', async () => {
    const urn = createUrns('urn:example').register('countries');
    const uiSchema = { type: 'VerticalLayout', elements: [], options: { urns: Array(1_001).fill(urn) } };
    const configuration = { id: 'countless', name: 'A', anonymousApply: false, applicantRoles: [], uiSchema };
    const document = '/configuration/v2/configuration/form-service/countless';
    const dataSchema = { type: 'object', properties: {} };
    await suite.world.api('demo-admin', 'PATCH', document, {
      operation: 'REPLACE',
      configuration: { ...configuration, dataSchema },
    });
    const warning = 'Not all form definitions could be searched';
    const list = await suite.open('/registers');
    const dead = list.getByRole('region', { name: 'References to registers that do not exist' });
    await dead.getByText(warning).waitFor();
    expect(await dead.textContent()).not.toContain('Every register that a form names exists.');
    expect(await findFaults(list)).toEqual([]);
    const page = await suite.open('/registers/countries');
    await page.getByRole('region', { name: 'References', exact: true }).getByText(warning).waitFor();
    await suite.world.api('demo-admin', 'DELETE', document);
  });

  it('registers: more than 50 have pages, and so have more than 50 entries', async () => {
    for (let count = 0; count < 51; count += 1)
      await createRegister(suite, `many-${String(count).padStart(2, '0')}`, '', []);
    const page = await suite.open('/registers');
    const names = () => page.getByRole('region', { name: 'Table: Registers' }).getByRole('rowheader').allTextContents();
    const first = await names();
    expect(first).toHaveLength(50);
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await settled(page);
    expect((await names()).filter((name) => first.includes(name))).toEqual([]);
    await page.getByRole('link', { name: 'First page' }).click();
    await page.getByRole('link', { name: 'Next page' }).waitFor();
    for (let count = 0; count < 51; count += 1)
      await suite.world.api('demo-admin', 'DELETE', `/form/v1/registers/many-${String(count).padStart(2, '0')}`);

    await page.goto(`${suite.world.url}/console/demo/registers/countries`);
    await page.getByText(/^1 to 50 of \d+$/).waitFor();
    expect(await page.getByRole('button', { name: 'Previous' }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await page.getByText(/^51 to 100 of \d+$/).waitFor();
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByText(/^1 to 50 of \d+$/).waitFor();
    await page.getByRole('button', { name: 'Add an entry' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Add an entry' }).waitFor();
  });
}
