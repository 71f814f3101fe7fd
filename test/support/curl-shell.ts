// Runs commands of documents, which call the product with curl.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Runs commands in a shell that ends at the first one that fails. Returns its exit code and all that it prints. */
export async function runCommands(
  commands: string,
  { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<{ code: number | null; text: string }> {
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', commands], { cwd, env });
  let text = '';
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const [code] = (await once(shell, 'close')) as [number | null];
  return { code, text };
}
