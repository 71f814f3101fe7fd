// Runs `npm run release` without the image, in a clone of this repository whose changelog is ready for a release.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { helms } from './helm.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
let folder: string;
let clone: string;
const git = (...args: string[]) =>
  run('git', ['-C', clone, '-c', 'user.name=test', '-c', 'user.email=test@example.org', ...args]);
const release = (...args: string[]) => {
  const PATH = `${dirname(helms()[0] ?? '')}:${process.env.PATH}`;
  const main = join(clone, 'dev/release/main.ts');
  return run(process.execPath, [main, '--builder', 'none', '--output', join(folder, 'out'), ...args], {
    env: { ...process.env, PATH },
  });
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-release-'));
  clone = join(folder, 'clone');
  await run('git', ['clone', '--quiet', '--depth', '1', `file://${root}`, clone]);
  await symlink(join(root, 'node_modules'), join(clone, 'node_modules'));
  // The clone contains only committed files. This copy makes the test include uncommitted changes of dev/release.
  await cp(join(root, 'dev/release'), join(clone, 'dev/release'), { recursive: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('refuses a changelog with unreleased changes, and a work tree with changes', async () => {
  await writeFile(join(clone, 'CHANGELOG.md'), '# Changelog\n\n## [Unreleased]\n\n- New.\n');
  await expect(release()).rejects.toMatchObject({ code: 1, stderr: 'The work tree has changes. Commit them.\n' });
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'a change');
  await expect(release()).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('unreleased changes') });
});

it('writes files whose checksums hold, and that name the commit', async () => {
  const { version } = JSON.parse(await readFile(join(clone, 'package.json'), 'utf8'));
  await writeFile(join(clone, 'CHANGELOG.md'), `# Changelog\n\n## [${version}] - 2026-12-01\n\n- A thing.\n`);
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'a release');
  await rm(join(folder, 'out'), { recursive: true });
  const { stdout } = await release();
  expect(stdout).toContain('image: left out');
  const out = join(folder, 'out');
  const chart = `formgate-${version}.tgz`;
  const names = ['LICENCES.md', 'NOTES.md', 'SHA256SUMS', 'bom.cdx.json', chart, 'provenance.json'];
  expect((await readdir(out)).sort()).toEqual(names.sort());
  const checked = await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: out });
  expect(checked.stdout.split('\n').filter((line) => line.endsWith(': OK'))).toHaveLength(names.length - 1);
  const { stdout: revision } = await git('rev-parse', 'HEAD');
  const { predicate } = JSON.parse(await readFile(join(out, 'provenance.json'), 'utf8'));
  expect(predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit).toBe(revision.trim());
  await expect(release()).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('is not empty') });
});
