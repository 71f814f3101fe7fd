// Finds files of the program, both in a checkout and in the image. The image contains a bundle (dev/image/bundle.ts). A
// file of the bundle contains many source modules, so no module can find files relative to itself.
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';

const isBundled = !import.meta.filename.endsWith('.ts');

/** The folder that contains package.json. */
export const programFolder = dirname(findPackageJSON(import.meta.url) as string);

/** Returns the path of a file of the program. `path` is relative to the folder that contains package.json. */
export function programFile(path: string): string {
  return join(programFolder, path);
}

/**
 * Finds a module that is imported by path or started as a process. `path` is the path of its source. In the image, each
 * such module is an entry point of the bundle.
 */
export function programModule(path: string): string {
  return programFile(isBundled ? path.replace(/\.ts$/, '.js') : path);
}
