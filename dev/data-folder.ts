// Opens the folder that contains all data of `npm start`, and deletes this data with `--fresh`.
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../src/service/operations/command-line.ts';
import { scrapeTargetsFile } from './monitoring/scrape-targets.ts';
import type { StartOptions } from './options.ts';
import { removePostgres } from './postgres/postgres.ts';
import { openSecrets, type Secrets } from './secrets.ts';

/** Formgate has used a folder that contains this file. It is deleted last, so that a deletion can be repeated. */
const secretsName = 'secrets.json';
const names = ['postgres', 'mailbox', 'logs', 'seed.json', 'reconciler.env', scrapeTargetsFile];

/**
 * Creates the data folder. With `fresh`, first deletes only the files that Formgate created in the folder. Throws
 * UsageError if these may be files of others.
 */
export async function openDataFolder({
  directory,
  fresh,
}: Pick<StartOptions, 'directory' | 'fresh'>): Promise<Secrets> {
  await mkdir(directory, { recursive: true });
  if (fresh) await deleteData(directory);
  await mkdir(join(directory, 'logs'), { recursive: true });
  return openSecrets(join(directory, secretsName));
}

async function deleteData(directory: string): Promise<void> {
  const secretsFile = join(directory, secretsName);
  const found = names.filter((name) => existsSync(join(directory, name)));
  if (found.length > 0 && !existsSync(secretsFile))
    throw new UsageError(
      `${directory} contains ${found.join(', ')}, but no ${secretsName}, so these may not be data of Formgate. Nothing was deleted. Set FORMGATE_DATA to another folder, or delete them yourself.`,
    );
  const password = await openSecrets(secretsFile).then(
    (secrets) => secrets.get('postgres'),
    () => 'lost',
  );
  await removePostgres({ directory: join(directory, 'postgres'), password });
  for (const name of [...names, secretsName]) await rm(join(directory, name), { recursive: true, force: true });
}
