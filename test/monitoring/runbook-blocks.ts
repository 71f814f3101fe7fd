// The command blocks of the runbooks, by section.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const runbookFolder = join(import.meta.dirname, '../../docs/runbooks');

export type Section = 'Diagnosis' | 'Fix' | 'Verification';

/** Returns the file names of all runbooks. */
export function runbookNames(): string[] {
  return readdirSync(runbookFolder).filter((name) => name !== 'README.md');
}

export function readRunbook(name: string): string {
  return readFileSync(join(runbookFolder, name), 'utf8');
}

/** Returns the code blocks of a runbook, or of a part of it. */
export function blocksOf(text: string): string[] {
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
}

/** Returns the commands of a section, without the functions at the beginning of the page. */
export function commandsOf(text: string, section: Section): string {
  const [, part = ''] = new RegExp(`^## ${section}\n([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, 'm').exec(text) ?? [];
  return blocksOf(part).join('');
}

/** Returns the variables and functions at the beginning of the runbooks, for this release. */
export function preludeOf(text: string, { namespace, release }: { namespace: string; release: string }): string {
  const [first = ''] = blocksOf(text);
  return first.replace('NAMESPACE=formgate RELEASE=formgate', `NAMESPACE=${namespace} RELEASE=${release}`);
}
