// Lists the text files of a tree for the rule checkers. It follows no links, and skips installed packages, data folders
// and fixtures that break rules intentionally.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of a tree: its path relative to the root, with forward slashes, and its text. */
export interface SourceFile {
  path: string;
  text: string;
}

/** The endings of files with code. */
export const codeEndings = ['.ts', '.mts', '.tsx', '.js', '.mjs'];

/** The folders with code. */
export const sourceFolders = ['src', 'reconciler', 'dev', 'test', 'web'];

const skipped = new Set(['node_modules', '.git', '.formgate', 'coverage', 'dist']);

/**
 * Folders that are left out, because the fixtures break rules intentionally, and the packages of the Angular sample are
 * not installed here.
 */
const leftOut = ['test/fixtures/', 'web/samples/angular/'];

/**
 * Returns all files in the folders with one of these path endings, sorted by path. The ending '' matches every file.
 * Ignores missing folders.
 */
export function listFiles(root: string, folders: string[], endings: string | readonly string[]): SourceFile[] {
  return folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => walk(root, folder))
    .filter((path) => [endings].flat().some((ending) => path.endsWith(ending)))
    .filter((path) => !leftOut.some((folder) => path.startsWith(folder)))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : walk(root, path);
    return entry.isFile() ? [path] : [];
  });
}
