// The old version that upgrade tests start from: its commit, and a copy of its code with its own packages. The copy is
// made once from the history of this repository. It is kept in .formgate and not in node_modules, because Node runs no
// TypeScript there.
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const oldVersion = '0.2.0';
/** The commit that completed `oldVersion`. */
const oldCommit = '72ed1a3bf1790ca1742f378ad78ffa618f1b5912';

const project = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Returns undefined if the history has the commit, otherwise a line that says what to do. */
export function missingHistory(folder = project): string | undefined {
  const found = spawnSync('git', ['cat-file', '-e', `${oldCommit}^{commit}`], { cwd: folder });
  if (found.status === 0) return undefined;
  return (
    `This clone does not have the commit of version ${oldVersion} (${oldCommit.slice(0, 7)}), whose code these tests run: ` +
    'run git fetch --unshallow.'
  );
}

/** Returns the folder of the old version's code. Throws with one line if the history lacks the commit. */
export async function checkOutOldVersion(): Promise<string> {
  const given = process.env.FORMGATE_OLD_CHECKOUT;
  if (given) return given;
  const folder = join(project, '.formgate', `version-${oldVersion}-${oldCommit.slice(0, 7)}`);
  if (existsSync(folder)) return folder;
  // Rename the folder last, so that an interrupted copy is not used, but made again.
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  await extractOldVersion(unfinished, ['src', 'reconciler', 'package.json', 'package-lock.json']);
  await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: unfinished });
  renameSync(unfinished, folder);
  return folder;
}

/** Writes these paths of the old version into a folder. Throws with one line if the history lacks the commit. */
export async function extractOldVersion(folder: string, paths: string[]): Promise<void> {
  const problem = missingHistory();
  if (problem) throw new Error(problem);
  const tar = join(folder, 'source.tar');
  await run('git', ['archive', '--output', tar, oldCommit, ...paths], { cwd: project });
  await run('tar', ['-xf', tar, '-C', folder]);
  rmSync(tar);
}
