// Runs the shell commands of the documentation. Many of them call the product with curl.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface ShellOptions {
  cwd?: string;
  env: NodeJS.ProcessEnv;
}

export interface ShellResult {
  /** The exit code; null if a signal ended the shell. */
  code: number | null;
  stdout: string;
  /** Standard output and standard error together. */
  text: string;
}

/** Runs commands in a shell that ends at the first command that fails. */
export async function runCommands(commands: string, { cwd, env }: ShellOptions): Promise<ShellResult> {
  const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', commands], { cwd, env });
  const result: ShellResult = { code: null, stdout: '', text: '' };
  shell.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    result.stdout += chunk;
    result.text += chunk;
  });
  shell.stderr.setEncoding('utf8').on('data', (chunk: string) => (result.text += chunk));
  [result.code] = (await once(shell, 'close')) as [number | null];
  return result;
}

/** Returns the standard output of the commands. If a command fails, throws an error with all output. */
export async function outputOf(commands: string, options: ShellOptions): Promise<string> {
  const { code, stdout, text } = await runCommands(commands, options);
  if (code !== 0) throw new Error(`The commands ended with ${code}:\n${text}`);
  return stdout;
}
