// The commands of the trial in docs/operations.md, and a shell that runs them as they are written there.
import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { outputOf } from './curl-shell.ts';

const root = join(import.meta.dirname, '../..');

/** Returns the code blocks in the page's order: addresses, setup, installation, client, definition, test. */
export function trialBlocks(): string[] {
  const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const section = page.slice(page.indexOf('### A trial'), page.indexOf('### Beside an existing platform'));
  return [...section.matchAll(/^ {3}```sh\n([\s\S]*?)^ {3}```$/gm)].map(([, text = '']) =>
    text.replaceAll(/^ {3}/gm, ''),
  );
}

export interface TrialShellOptions {
  /** Folder in which the commands run. */
  cwd: string;
  /** The environment variables that the first step sets, and others. */
  env: Record<string, string>;
  /** Folders whose programs come before those of PATH. */
  programs?: string[];
}

/** Runs commands as one shell would: with the variables and functions of earlier steps. Rejects if a command fails. */
export function createTrialShell({ cwd, env, programs = [] }: TrialShellOptions) {
  const path = [...programs, dirname(process.execPath), process.env.PATH].join(delimiter);
  let before = '';
  return async (commands = ''): Promise<string> => {
    // Later steps need the assignments of tokens and the functions again. All other commands must run only once.
    const state = commands.match(/^(?:\w+\(\) \{[\s\S]*?^\}|[A-Z_]+=\$\(token .*\))$/gm) ?? [];
    const options = { cwd, env: { ...process.env, ...env, PATH: path } };
    const output = await outputOf(before + commands, options);
    before += state.map((line) => `${line}\n`).join('');
    return output;
  };
}
