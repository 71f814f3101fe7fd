// Locates the built pages, and checks that they exist.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../service/operations/config.ts';
import { programFile } from '../../service/program-files.ts';
import type { PageName } from './page.ts';

/**
 * `web/build.ts` writes one folder for each page into this directory. The folder contains `index.html`, `assets` and
 * compressed copies.
 */
export const pagesDirectory: string = programFile('web/dist');

/** Throws ConfigError if a page was not built. */
export function requirePages(pages: readonly PageName[], directory = pagesDirectory): void {
  const missing = pages.filter((name) => !existsSync(join(directory, name, 'index.html')));
  if (missing.length === 0) return;
  throw new ConfigError([
    { name: 'PAGES', problem: `${missing.join(' and ')} must be built first: npm run build --workspace web` },
  ]);
}
