// Helps tests that relate a built page to its sources: builds a page with source maps, and parses a file.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type ParseResult, parseSync } from 'vite';
import { buildApp } from './build.ts';

/** Builds a page into a folder. The files are the same as in web/dist, and each script has a source map beside it. */
export async function buildWithMaps(app: string, folder: string): Promise<void> {
  // Uses a separate process with its own NODE_ENV, because the output depends on that variable.
  const env = { NODE_ENV: 'production' };
  await promisify(execFile)(process.execPath, [import.meta.filename, app, folder], { env });
}

/**
 * Parses a source file. Offsets count UTF-16 code units. The parser expects types and JSX according to the ending of
 * `name`.
 */
export function parseSource(name: string, text: string): ParseResult['program'] {
  const { program, errors } = parseSync(name, text);
  if (errors.length > 0) throw new Error(`${name}: ${errors[0]?.message}`);
  return program;
}

if (import.meta.main) {
  const [, , app = '', folder = ''] = process.argv;
  await buildApp(app, folder, 'hidden');
}
