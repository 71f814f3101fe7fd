// Tests the actions of the console on registers.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults } from '../../console-world.ts';

export function testRegisters(suite: ConsoleSuite): void {
  it('registers: create, add, edit and delete entries, import CSV after a preview, pin and compare, delete', async () => {
    const page = await suite.open('/registers');
    await page.getByText('Create a register').click();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Enter a name' }).click();
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('register-name');
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel('Name', { exact: true }).fill('towns');
    await page.getByLabel(/^Description/).fill('Towns with an office');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('The register towns was created.').waitFor();
    await page.getByLabel('Table with a header').fill('value,label\nban,Banff\nwhi,<b>Whitehorse</b>\n');
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('2 added, 0 changed, 0 removed').waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('Imported: 2 added').waitFor();
    await page.getByRole('cell', { name: '<b>Whitehorse</b>', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Keep the current state' }).click();
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

  it('registers: entries with the keys .. and N/A are added, edited and deleted, and the register still exists', async () => {
    await createRegister(suite, 'symbols', '', [{ value: 'm', label: 'Metre' }]);
    const page = await suite.open('/registers/symbols');
    const stored = async () => {
      const register = await suite.world.api('demo-admin', 'GET', '/form/v1/registers/symbols');
      return (register as { entries: unknown }).entries;
    };
    for (const value of ['..', 'N/A']) {
      await page.getByRole('button', { name: 'Add an entry' }).click();
      await page.getByRole('textbox', { name: 'value', exact: true }).fill(value);
      await page.getByRole('button', { name: 'Save entry' }).click();
      await page.getByText(`The entry ${value} was saved.`).waitFor();
      await page.getByRole('button', { name: `Edit ${value}` }).click();
      await page.getByRole('textbox', { name: 'label' }).fill('None');
      await page.getByRole('button', { name: 'Save entry' }).click();
      await expect.poll(stored).toContainEqual({ value, label: 'None' });
      // The page closes the editor only when it has the response.
      await page.getByRole('button', { name: 'Save entry' }).waitFor({ state: 'detached' });
      await page.getByRole('button', { name: `Edit ${value}` }).click();
      await page.getByRole('button', { name: 'Delete entry' }).click();
      await page.getByText(`The entry ${value} was deleted.`).waitFor();
    }
    expect(await stored()).toEqual([{ value: 'm', label: 'Metre' }]);
  });

  it('registers: a new entry has numbers where the other entries have numbers', async () => {
    await createRegister(suite, 'storeys', '', [{ value: 1, label: 'One' }]);
    const page = await suite.open('/registers/storeys');
    await page.getByRole('button', { name: 'Add an entry' }).click();
    await page.getByRole('textbox', { name: 'value', exact: true }).fill('2');
    await page.getByRole('textbox', { name: 'label' }).fill('2nd');
    await page.getByRole('button', { name: 'Save entry' }).click();
    await page.getByText('The entry 2 was saved.').waitFor();
    const register = await suite.world.api('demo-admin', 'GET', '/form/v1/registers/storeys');
    expect((register as { entries: unknown }).entries).toContainEqual({ value: 2, label: '2nd' });
  });

  it('registers: a new entry with the key of one that exists is refused, and that one stays as it is', async () => {
    const louise = { value: 'lou', label: 'Louise', area: 0.8 };
    const moraine = { value: 'mor', label: 'Moraine', area: 0.5 };
    await createRegister(suite, 'lakes', '', [louise]);
    const page = await suite.open('/registers/lakes');
    // Somebody else adds an entry that this page does not show.
    await suite.world.api('demo-admin', 'PUT', '/form/v1/registers/lakes/entries/mor', moraine);
    await page.getByRole('button', { name: 'Add an entry' }).click();
    const stored = async () => {
      const register = await suite.world.api('demo-admin', 'GET', '/form/v1/registers/lakes');
      return (register as { entries: unknown }).entries;
    };
    for (const { value } of [louise, moraine]) {
      await page.getByRole('textbox', { name: 'value', exact: true }).fill(value);
      await page.getByRole('button', { name: 'Save entry' }).click();
      await page.getByText('An entry with this key exists.').waitFor();
      expect(await findFaults(page)).toEqual([]);
      expect(await stored()).toEqual([louise, moraine]);
    }
    await page.getByRole('textbox', { name: 'value', exact: true }).fill('new');
    await page.getByRole('button', { name: 'Save entry' }).click();
    await page.getByText('The entry new was saved.').waitFor();
    expect(await stored()).toEqual([louise, moraine, { value: 'new' }]);
  });

  it('registers: a change, deletion or import is not made over the change of somebody else without a question', async () => {
    const elk = { value: 'elk', label: 'Elk', note: 'large' };
    const bear = { value: 'bear', label: 'Bear' };
    await createRegister(suite, 'animals', '', [elk, bear]);
    const { api } = suite.world;
    const stored = async () => {
      const register = await api('demo-admin', 'GET', '/form/v1/registers/animals');
      return (register as { entries: unknown }).entries;
    };
    const change = (entry: object, key = 'elk') =>
      api('demo-admin', 'PUT', `/form/v1/registers/animals/entries/${key}`, entry);
    const page = await suite.open('/registers/animals');
    const refused = page.getByText('Somebody has changed or deleted this entry since you opened it.');
    const label = page.getByRole('textbox', { name: 'label', exact: true });

    await page.getByRole('button', { name: 'Edit elk' }).click();
    await label.fill('Mine');
    await change({ ...elk, note: 'theirs' });
    await page.getByRole('button', { name: 'Save entry' }).click();
    await refused.waitFor();
    expect(await findFaults(page)).toEqual([]);
    expect(await label.inputValue()).toBe('Mine');
    expect(await stored()).toEqual([{ ...elk, note: 'theirs' }, bear]);
    await page.getByRole('button', { name: 'Replace that change with mine' }).click();
    await page.getByText('The entry elk was saved.').waitFor();
    expect(await stored()).toEqual([{ ...elk, label: 'Mine' }, bear]);

    await page.getByRole('button', { name: 'Edit bear' }).click();
    await change({ ...bear, label: 'Grizzly' }, 'bear');
    await page.getByRole('button', { name: 'Delete entry' }).click();
    await refused.waitFor();
    expect(await stored()).toEqual([
      { ...elk, label: 'Mine' },
      { ...bear, label: 'Grizzly' },
    ]);
    await page.getByRole('button', { name: 'Delete it anyway' }).click();
    await page.getByText('The entry bear was deleted.').waitFor();

    await page.getByLabel('Table with a header').fill('value,label\nelk,Elk\n');
    await page.getByLabel('Entries that the table lacks').selectOption('replace');
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('0 added, 1 changed, 0 removed').waitFor();
    await change({ value: 'wolf', label: 'Wolf' }, 'wolf');
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('The register has changed since the preview.').waitFor();
    await page.getByText('0 added, 1 changed, 1 removed').waitFor();
    expect(await stored()).toContainEqual({ value: 'wolf', label: 'Wolf' });
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('Imported: 0 added, 1 changed, 1 removed.').waitFor();
    expect(await stored()).toEqual([{ ...elk, label: 'Elk' }]);
  });

  it('registers: a file that is chosen or dropped fills the table; what it lacks is removed if asked to', async () => {
    await createRegister(suite, 'ports', 'harbours', [
      { value: 'hal', label: 'Halifax' },
      { value: 'van', label: 'Vancouver' },
    ]);
    const page = await suite.open('/registers/ports');
    const table = page.getByLabel('Table with a header');
    await drop(page, 'ports.csv', 'code;value\nHalifax;hal\n');
    await expect.poll(() => table.inputValue()).toBe('code;value\nHalifax;hal\n');
    await drop(page, 'large.csv', 'x'.repeat(8 * 1024 * 1024 + 1));
    await page.getByRole('alert').getByRole('link', { name: 'large.csv is larger than 8 MB' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    const chosen = 'value,label\nhal,Halifax (NS)\nstj,"St. John’s"\n';
    const file = { name: 'ports.csv', mimeType: 'text/csv', buffer: Buffer.from(chosen) };
    await page.getByLabel('File', { exact: true }).setInputFiles(file);
    await expect.poll(() => table.inputValue()).toBe(chosen);
    await table.fill('');
    // Excel writes Windows-1252. A file with the same name is read again.
    await page
      .getByLabel('File', { exact: true })
      .setInputFiles({ ...file, buffer: Buffer.from('value\né\n', 'latin1') });
    await expect.poll(() => table.inputValue()).toBe('value\né\n');
    await page.getByLabel('File', { exact: true }).setInputFiles(file);
    await expect.poll(() => table.inputValue()).toBe(chosen);
    await page.getByLabel('Column that is the key').fill('value');
    await page.getByLabel('Entries that the table lacks').selectOption('are removed');
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('1 added, 1 changed, 1 removed').waitFor();
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('Imported: 1 added, 1 changed, 1 removed').waitFor();
    const { entries } = (await suite.world.api('demo-admin', 'GET', '/form/v1/registers/ports')) as {
      entries: unknown;
    };
    expect(entries).toEqual([
      { value: 'hal', label: 'Halifax (NS)' },
      { value: 'stj', label: 'St. John’s' },
    ]);
  });

  it('registers: entries that are imported into an empty register can be edited, whatever their key is called', async () => {
    await createRegister(suite, 'codes', '', []);
    const page = await suite.open('/registers/codes');
    await page.getByLabel('Table with a header').fill('code,label\nban,Banff\n');
    await page.getByLabel('Column that is the key').fill('code');
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('1 added, 0 changed, 0 removed').waitFor();
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('Imported: 1 added').waitFor();
    await page.getByRole('button', { name: 'Edit ban' }).waitFor();
  });
}

export async function createRegister(
  { world }: ConsoleSuite,
  name: string,
  description: string,
  entries: (object | string)[],
): Promise<void> {
  await world.api('demo-admin', 'POST', '/form/v1/registers', { name, description, entries });
}

/** Drops a file on the field for the CSV table, as a drag from a file manager does. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const file = `new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/csv' })`;
  await page.evaluate(`{
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(${file});
    for (const type of ['dragover', 'drop'])
      document.querySelector('#csv').dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
  }`);
}
