// Ends the child processes of tests when their test worker ends, and describes why a child did not start.
import type { ChildProcess } from 'node:child_process';

const running = new Map<ChildProcess, NodeJS.Signals>();
let isListening = false;

/**
 * Ends the child when this process exits, for example when the runner ends a worker in the middle of a test. All
 * children share one listener, because Node warns about more than ten listeners.
 */
export function endWithThisProcess(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): void {
  if (!isListening)
    process.once('exit', () => {
      for (const [one, its] of running) one.kill(its);
    });
  isListening = true;
  running.set(child, signal);
  child.once('exit', () => running.delete(child));
}

export const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

/**
 * Copies a child's standard error to the standard error of this process. Returns a function that gives the last 10,000
 * characters.
 */
export function keepErrors(child: ChildProcess): () => string {
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    process.stderr.write(chunk);
    errors = `${errors}${chunk}`.slice(-10_000);
  });
  return () => errors;
}

/** Describes a child that did not start: the last lines that it wrote, and its exit code or signal if it has ended. */
export function failedStart(name: string, child: ChildProcess, ...outputs: string[]): Error {
  const { exitCode, signalCode } = child;
  const end = signalCode ?? (exitCode === null ? undefined : `exit code ${exitCode}`);
  const lines = outputs.flatMap((output) => output.trim().split('\n').slice(-20)).filter((line) => line !== '');
  const how = end === undefined ? 'is not ready, and still runs' : `ended with ${end} before it was ready`;
  return new Error(`The ${name} ${how}. ${lines.length > 0 ? `It wrote:\n${lines.join('\n')}` : 'It wrote nothing.'}`);
}
