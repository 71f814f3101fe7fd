// Hashes the code of a module, so that docs/mutation.md can tell whether a result is about the code as it is now.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

const root = join(import.meta.dirname, '../..');

/** Returns the SHA-256 of the code in hexadecimal, without comments, indentation and empty lines. */
export function codeHash(text: string): string {
  let code = text;
  for (const { start, end } of parseSync('module.ts', text).comments.toReversed())
    code = code.slice(0, start) + code.slice(end);
  const lines = code.split('\n').map((line) => line.trim());
  return createHash('sha256')
    .update(lines.filter((line) => line !== '').join('\n'))
    .digest('hex');
}

/** Returns whether the code of a module has not changed since its mutants ran. */
export function isCurrent({ file, codeSha256 }: { file: string; codeSha256?: string }): boolean {
  const path = join(root, file);
  return existsSync(path) && codeHash(readFileSync(path, 'utf8')) === codeSha256;
}
