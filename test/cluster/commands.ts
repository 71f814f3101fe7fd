// Runs programs for the cluster tests. Errors contain the program's output.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

export interface RunOptions {
  /** Text for the program's standard input. */
  input?: string;
  cwd?: string;
  env?: Record<string, string>;
  /** Milliseconds after which the program counts as hanging; by default five minutes. */
  timeout?: number;
  /** Shows the output instead of returning it. */
  show?: boolean;
}

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the program to its end, with any exit code. Rejects if the program cannot be started or takes too long. */
export async function attempt(program: string, args: string[], options: RunOptions = {}): Promise<Outcome> {
  const output = options.show ? 'inherit' : 'pipe';
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', output, output],
    timeout: options.timeout ?? 300_000,
    killSignal: 'SIGKILL',
  });
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(options.input ?? '');
  const ended = new Promise<number>((done, fail) => {
    child.on('error', fail);
    child.on('close', (code, signal) =>
      signal ? fail(new Error(`${program} ${args.join(' ')} was ended by ${signal}.`)) : done(code ?? 1),
    );
  });
  const said = [child.stdout, child.stderr].map(async (stream) => (stream ? text(stream) : ''));
  const [code, stdout = '', stderr = ''] = await Promise.all([ended, ...said]);
  return { code, stdout, stderr };
}

/** Returns the program's output. Rejects with the output if the exit code is not 0. */
export async function run(program: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await attempt(program, args, options);
  if (code === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')} ended with ${code}: ${(stderr || stdout).trim()}`);
}
