// Tests that the secrets of an installation are generated once, stored, and readable only by their owner.
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSecrets } from './secrets.ts';

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-secrets-'));
  file = join(directory, 'secrets.json');
});
afterEach(() => rm(directory, { recursive: true }));

it('a secret is 32 random bytes, generated once and stored', async () => {
  const secrets = await openSecrets(file);
  const [one, again, other] = await Promise.all([secrets.get('one'), secrets.get('one'), secrets.get('other')]);
  expect(one).toMatch(/^[0-9a-f]{64}$/);
  expect(again).toBe(one);
  expect(other).not.toBe(one);
  const reopened = await openSecrets(file);
  expect(await Promise.all([reopened.get('one'), reopened.get('other')])).toEqual([one, other]);
});

it('only the owner may read the file', async () => {
  await (await openSecrets(file)).get('one');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

it('a damaged file is refused in one line that says what to do', async () => {
  for (const content of ['', '{"one":', '{"one":1}', '[]x']) {
    await writeFile(file, content);
    await expect(openSecrets(file)).rejects.toThrow(/^\S+secrets\.json is damaged\. .* --fresh\.$/);
  }
});
