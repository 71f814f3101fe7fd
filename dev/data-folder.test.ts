// Tests which files `npm start -- --fresh` deletes.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { UsageError } from '../src/service/operations/command-line.ts';
import { openDataFolder } from './data-folder.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-folder-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Creates a file in each of these folders, as a person or Formgate does. */
async function fill(...folders: string[]): Promise<void> {
  for (const folder of folders) {
    await mkdir(join(directory, folder));
    await writeFile(join(directory, folder, 'file'), 'x');
  }
}
const files = async () => (await readdir(directory, { recursive: true })).toSorted();

it('a folder in which Formgate has never run keeps its files, and the message says why', async () => {
  await fill('logs', 'mailbox', 'photos');
  const before = await files();
  const opened = openDataFolder({ directory, fresh: true });
  await expect(opened).rejects.toThrow(UsageError);
  await expect(opened).rejects.toThrow(/contains mailbox, logs, but no secrets.json/);
  expect(await files()).toEqual(before);
});

it.each([
  ['usable', '{"postgres":"secret"}'],
  ['damaged', '{'],
])('the data of Formgate is deleted if its secrets are %s, and other files are kept', async (_, secrets) => {
  await fill('logs', 'mailbox', 'postgres', 'photos');
  await writeFile(join(directory, 'secrets.json'), secrets);
  await openDataFolder({ directory, fresh: true });
  expect(await files()).toEqual(['logs', 'photos', 'photos/file']);
});

it('an empty folder can be opened, with or without --fresh', async () => {
  await openDataFolder({ directory, fresh: true });
  await openDataFolder({ directory, fresh: false });
  expect(await files()).toEqual(['logs']);
});
