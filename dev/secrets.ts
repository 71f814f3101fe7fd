// Generates the secrets of an installation and keeps them in one file, which only its owner may read. Rejects a damaged
// file, because newly generated secrets could not decrypt the existing data.
import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { jsonOrUndefined } from '../src/service/json-value.ts';

export interface Secrets {
  /** Returns the secret with this name: 32 random bytes in hexadecimal, generated and stored on the first call. */
  get(name: string): Promise<string>;
}

export async function openSecrets(file: string): Promise<Secrets> {
  const known = new Map<string, string>(Object.entries(await readSecrets(file)));
  let saving = Promise.resolve();
  const save = async () => {
    await writeFile(`${file}.unfinished`, JSON.stringify(Object.fromEntries(known), undefined, 2), {
      mode: 0o600,
      flush: true,
    });
    await rename(`${file}.unfinished`, file);
  };
  return {
    get: async (name) => {
      const secret = known.get(name) ?? randomBytes(32).toString('hex');
      if (!known.has(name)) {
        known.set(name, secret);
        saving = saving.then(save);
      }
      await saving;
      return secret;
    },
  };
}

async function readSecrets(file: string): Promise<Record<string, string>> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw error;
  });
  const parsed: unknown = jsonOrUndefined(text);
  const entries = Object.entries(parsed && typeof parsed === 'object' ? parsed : { '': undefined });
  if (entries.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
    return Object.fromEntries(entries);
  throw new Error(
    `${file} is damaged. The data cannot be read without its secrets: delete the data with npm start -- --fresh.`,
  );
}
