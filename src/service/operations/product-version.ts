// Reads the version of this product from package.json.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { programFile } from '../program-files.ts';

/** Returns the version, such as `0.2.0`. */
export function productVersion(): string {
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(programFile('package.json'), 'utf8'))).version;
}
