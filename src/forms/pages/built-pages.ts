// Locates the built pages, and checks that they can be read.
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../service/operations/config.ts';
import { programFile } from '../../service/program-files.ts';
import type { PageName } from './page.ts';

/**
 * `web/build.ts` writes one folder for each page into this directory. The folder contains `index.html`, `assets` and
 * compressed copies.
 */
export const pagesDirectory: string = programFile('web/dist');

/** Throws ConfigError if a page was not built, or cannot be read. */
export function requirePages(pages: readonly PageName[], directory = pagesDirectory): void {
  const problems = pages.flatMap((name) => problemOf(name, join(directory, name, 'index.html')));
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => ({ name: 'PAGES', problem })));
}

function problemOf(name: PageName, file: string): string[] {
  try {
    accessSync(file, constants.R_OK);
    return [];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') return [`${name} cannot be read (${message})`];
    return [`${name} must be built first: npm run build --workspace web`];
  }
}
