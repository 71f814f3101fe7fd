import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-secrets-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs the command for a Keycloak that does not exist. */
function setUp(output: string): Promise<{ code: number; output: string }> {
  const keycloak = ['--url', 'http://127.0.0.1:9/auth', '--user', 'admin', '--tenant', 'town'];
  const env = { ...process.env, KEYCLOAK_PASSWORD: 'x' };
  return new Promise((done) => {
    const all = [join(import.meta.dirname, 'main.ts'), ...keycloak, '--output', output];
    execFile(process.execPath, all, { env }, (error, stdout, stderr) =>
      done({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    );
  });
}

it('a file that cannot be written is reported before Keycloak is called', async () => {
  const ran = await setUp(join(folder, 'missing', 'secrets.yaml'));
  expect(ran.code).toBe(2);
  expect(ran.output).toMatch(/secrets\.yaml cannot be written \(ENOENT\)\. Name another file with --output\.$/m);
});

it('an existing file stays as it is', async () => {
  await writeFile(join(folder, 'existing.yaml'), 'x');
  const ran = await setUp(join(folder, 'existing.yaml'));
  expect(ran).toMatchObject({ code: 2, output: expect.stringContaining('existing.yaml exists.') });
});

it('no file remains if the command fails before it has a secret', async () => {
  await mkdir(join(folder, 'empty'));
  const ran = await setUp(join(folder, 'empty', 'secrets.yaml'));
  expect(ran).toMatchObject({ code: 1, output: expect.stringContaining('cannot be reached') });
  expect(await readdir(join(folder, 'empty'))).toEqual([]);
});
