// Runs one of the product's processes as a cluster would: its main, its environment, its readiness, restarted when it
// dies. Its log goes to a file.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

export interface ChildOptions {
  /** As people see it. */
  name: string;
  /** Path of its main.ts. */
  main: string;
  /** All that the child gets of an environment, beside what a program needs to run at all. */
  env: Record<string, string>;
  /** Standard output and error are appended here. */
  logFile: string;
  /** Answers 200 when the child can serve. */
  readyUrl: string;
  /** Called when the child died by itself and will be started again after `waitMs`. */
  onDeath(reason: string, waitMs: number): void;
}

export interface SupervisedChild {
  /** Resolves when it is ready for the first time; rejects, with its last words, if it dies before that or takes too long. */
  ready: Promise<void>;
  isReady(): Promise<boolean>;
  /** SIGTERM, and SIGKILL after 10 s. */
  stop(): Promise<void>;
}

const inherited = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TZ', 'SystemRoot', 'NODE_COMPILE_CACHE'];
/** Keep the heap near what is in use: half the memory under load, and no cost that could be measured (decision 0013). */
const memoryFlags = ['--max-semi-space-size=8', '--heap-growing-percent=30'];
/** Starts that find their code compiled take less time and 25 MiB less memory. */
const compileCache = join(import.meta.dirname, '../../node_modules/.cache/formgate');
const longestStart = 60_000;
const longestWait = 10_000;

export function superviseChild(options: ChildOptions): SupervisedChild {
  let stopping = false;
  let wasReady = false;
  let child = launch(options);
  const isReady = () =>
    fetch(options.readyUrl, { signal: AbortSignal.timeout(2_000) }).then(
      ({ status }) => status === 200,
      () => false,
    );

  async function watch(): Promise<void> {
    for (let waitMs = 500; ; waitMs = Math.min(waitMs * 2, longestWait)) {
      const started = Date.now();
      const reason = await ended(child);
      if (stopping || !wasReady) return;
      if (Date.now() - started > 30_000) waitMs = 500;
      options.onDeath(reason, waitMs);
      await delay(waitMs);
      if (stopping) return;
      child = launch(options);
    }
  }

  async function becomeReady(): Promise<void> {
    for (const deadline = Date.now() + longestStart; !(await isReady()); await delay(50)) {
      if (stopping) return;
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
        const words = await lastWords(options.logFile);
        throw new Error(`The ${options.name} did not start: ${words} (its log is ${options.logFile})`);
      }
    }
    wasReady = true;
  }

  const watching = watch();
  return {
    ready: becomeReady(),
    isReady,
    stop: async () => {
      stopping = true;
      await endChild(child);
      await Promise.race([watching, delay(longestWait, undefined, { ref: false })]);
    },
  };
}

function launch({ main, env, logFile }: ChildOptions): ChildProcess {
  const follow = pathToFileURL(join(import.meta.dirname, 'follow-parent.ts')).href;
  const own = inherited.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
  // The file itself, no pipe through us: the child's last lines are kept even if we are gone.
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(process.execPath, [...memoryFlags, `--import=${follow}`, main], {
    env: { NODE_COMPILE_CACHE: compileCache, ...Object.fromEntries(own), ...env },
    stdio: ['pipe', log, log],
    // Ctrl-C reaches the whole group of a terminal: a child out of the group is stopped by us, in order.
    detached: process.platform !== 'win32',
  });
  closeSync(log);
  // Without a process there is an error in place of an exit; whoever waits for the exit hears of it.
  child.on('error', () => undefined);
  child.stdin?.on('error', () => undefined);
  return child;
}

/** @returns why it ended */
async function ended(child: ChildProcess): Promise<string> {
  if (child.exitCode === null && child.signalCode === null)
    await new Promise((done) => child.once('exit', done).once('error', done));
  return child.signalCode ?? `exit code ${child.exitCode}`;
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = ended(child);
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), longestWait);
  await exit;
  clearTimeout(timer);
}

/** The last line of a log, in words if it is one of ours. */
async function lastWords(file: string): Promise<string> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).trim().split('\n');
  // Node prints a stack below an uncaught error.
  const line = lines.findLast((one) => one.startsWith('{') || /Error\b.*: /.test(one)) ?? lines.at(-1) ?? '';
  try {
    const { msg, err }: { msg?: string; err?: { message?: string } } = JSON.parse(line);
    return [msg, err?.message].filter(Boolean).join(': ');
  } catch {
    return line || 'it said nothing';
  }
}
