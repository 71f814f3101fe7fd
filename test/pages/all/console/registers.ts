// Tests the actions of the console on registers.
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults } from '../../console-world.ts';

export function testRegisters(suite: ConsoleSuite): void {
  it('registers: create, add, edit and delete entries, import CSV after a preview, pin and compare, delete', async () => {
    const page = await suite.open('/registers');
    await page.getByText('Create a register').click();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Enter a name' }).click();
    expect(await page.evaluate('document.activeElement.id')).toBe('register-name');
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel('Name', { exact: true }).fill('towns');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('The register towns was created.').waitFor();
    await page.getByLabel('Table with a header').fill('value,label\nban,Banff\nwhi,<b>Whitehorse</b>\n');
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('2 added, 0 changed, 0 removed').waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('Imported: 2 added').waitFor();
    await page.getByRole('cell', { name: '<b>Whitehorse</b>', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Keep the present state' }).click();
    await page.getByText('is kept as a revision').waitFor();
    await page.getByRole('button', { name: 'Edit ban' }).click();
    await page.getByRole('textbox', { name: 'label' }).fill('Banff (Alberta)');
    await page.getByRole('button', { name: 'Save entry' }).click();
    await page.getByText('The entry ban was saved.').waitFor();
    await page.getByRole('button', { name: 'Add an entry' }).click();
    await page.getByRole('textbox', { name: 'value', exact: true }).fill('red');
    await page.getByRole('button', { name: 'Save entry' }).click();
    await page.getByText('The entry red was saved.').waitFor();
    await page.getByRole('button', { name: 'Edit red' }).click();
    await page.getByRole('button', { name: 'Delete entry' }).click();
    await page.getByText('The entry red was deleted.').waitFor();
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByText('0 added, 1 changed, 0 removed').waitFor();
    await page.getByRole('button', { name: 'Pin revision 0' }).click();
    await page.getByText('Revision 0 is pinned').waitFor();
    await page.getByText('Delete this register …').click();
    await page.getByLabel('Type towns to confirm').fill('towns');
    await page.getByRole('button', { name: 'Delete this register' }).click();
    await page.getByText('The register towns was deleted.').waitFor();
  });
}
