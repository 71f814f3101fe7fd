// Ends the workers of a run in which nothing has happened for minutes, and prints what each of them was executing.
// Timeouts of tests do not help if a worker loops forever or waits outside a test. A time limit for the whole run would
// end it without printing the cause.
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Reporter, TestCase, TestModule, VitestPluginContext } from 'vitest/node';
import { within } from '../../src/service/time-limit.ts';

/** Milliseconds without an event, after which a run counts as stalled. Longer than the longest timeout of a test. */
const patience = 660_000;
/**
 * Milliseconds to wait until the debugger has paused a worker. A worker pauses only if it computes or its timers fire.
 */
const pauseTime = 10_000;

/**
 * Milliseconds to wait for the debugger of a worker. The debugger does not respond while a system call blocks the
 * worker.
 */
const answerTime = 20_000;

/**
 * A plugin that adds the reporter. If the configuration listed the reporter, a command that names reporters would
 * replace it.
 */
export const endStalledRun = (milliseconds: number = patience) => ({
  name: 'formgate:end-stalled-run',
  configureVitest: ({ vitest }: VitestPluginContext) => void vitest.config.reporters.push(new StalledRun(milliseconds)),
});

class StalledRun implements Reporter {
  readonly #running = new Map<string, { since: number; tests: Set<string> }>();
  readonly #patience: number;
  #lastSign = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.#patience = milliseconds;
  }

  onTestRunStart(): void {
    this.#lastSign = performance.now();
    this.#timer = setInterval(() => void this.#check(), this.#patience / 20).unref();
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer);
  }

  onTestModuleQueued(module: TestModule): void {
    this.#lastSign = performance.now();
    this.#running.set(module.relativeModuleId, { since: this.#lastSign, tests: new Set() });
  }

  onTestModuleEnd(module: TestModule): void {
    this.#lastSign = performance.now();
    this.#running.delete(module.relativeModuleId);
  }

  onTestCaseReady(test: TestCase): void {
    this.#lastSign = performance.now();
    this.#running.get(test.module.relativeModuleId)?.tests.add(test.fullName);
  }

  onTestCaseResult(test: TestCase): void {
    this.#lastSign = performance.now();
    this.#running.get(test.module.relativeModuleId)?.tests.delete(test.fullName);
  }

  async #check(): Promise<void> {
    if (performance.now() - this.#lastSign < this.#patience) return;
    this.#lastSign = performance.now();
    const seconds = (since: number) => Math.round((performance.now() - since) / 1_000);
    const files = [...this.#running].map(([path, { since, tests }]) =>
      [`  ${path}, for ${seconds(since)} s`, ...[...tests].map((name) => `    ${name}`)].join('\n'),
    );
    process.stderr.write(
      `\nNothing has happened for ${this.#patience / 1_000} s. Still running:\n${files.join('\n')}\n`,
    );
    const workers = await workerIds();
    // If there are no workers, the runner itself has stalled and cannot continue.
    if (workers.length === 0) process.exit(1);
    for (const worker of workers) {
      const place = within(whereItIs(worker), answerTime, new Error('does not respond'));
      process.stderr.write(await place.catch((error: unknown) => `Worker ${worker}: ${error}\n`));
      kill(worker);
      await debuggerPortIsFree();
    }
    this.#lastSign = performance.now();
  }
}

/** Ends a worker. The run then reports the worker's file as failed, and continues with the other files. */
function kill(worker: number): void {
  try {
    process.kill(worker, 'SIGKILL');
  } catch {
    // The worker has just ended.
  }
}

/** Returns the process ids of the workers. Returns none on systems without /proc. */
async function workerIds(): Promise<number[]> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8').catch(() => '');
  const ids = children.split(' ').filter(Boolean);
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')));
  return ids.filter((_, nth) => lines[nth]?.includes('vitest/dist/workers')).map(Number);
}

/** A frame of the call stack. `lineNumber` counts from 0. */
interface Frame {
  functionName: string;
  location: { scriptId: string; lineNumber: number };
}

/** Returns what a worker is doing. Asks Node's debugger, which responds even while the worker computes. */
async function whereItIs(worker: number): Promise<string> {
  const debug = await openDebugger(worker);
  try {
    const expression = 'process.getActiveResourcesInfo().join()';
    const { result } = (await debug.call('Runtime.evaluate', { expression })) as { result: { value: string } };
    await debug.call('Debugger.enable');
    const paused = debug.event('Debugger.paused') as Promise<{ callFrames: Frame[] }>;
    await debug.call('Debugger.pause');
    // A worker that runs no code does not pause.
    const { callFrames } = await within(paused, pauseTime, { callFrames: [] });
    const lines = callFrames.map(({ functionName, location: { scriptId, lineNumber } }) => {
      return `    at ${functionName || '(anonymous)'} ${debug.scripts.get(scriptId)}:${lineNumber + 1}\n`;
    });
    return `Worker ${worker} holds ${result.value}\n${lines.join('')}`;
  } finally {
    debug.close();
  }
}

/**
 * The default port of Node's debugger. All workers can use the same port, because they are paused one after the other.
 */
const debuggerPort = 9229;

/** Resolves when nothing listens on the port: a worker that was killed keeps it until the system has cleaned up. */
async function debuggerPortIsFree(): Promise<void> {
  const end = performance.now() + answerTime;
  while (performance.now() < end && (await askDebugger().catch(() => undefined))) await delay(100);
}

/** Waits until the worker has opened its debugger, and returns the debugger's response. The caller limits the time. */
async function untilItAnswers(): Promise<Response> {
  for (;;) {
    const response = await askDebugger().catch(() => undefined);
    if (response) return response;
    await delay(100);
  }
}

const askDebugger = () => fetch(`http://127.0.0.1:${debuggerPort}/json/list`, { headers: { connection: 'close' } });

async function openDebugger(worker: number) {
  await debuggerPortIsFree();
  process.kill(worker, 'SIGUSR1');
  const list = await untilItAnswers();
  const [{ webSocketDebuggerUrl }] = (await list.json()) as [{ webSocketDebuggerUrl: string }];
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const waiting = new Map<string | number, (result: unknown) => void>();
  const scripts = new Map<string, string>();
  socket.onmessage = ({ data }) => {
    const { id, method, result, params } = JSON.parse(String(data));
    if (method === 'Debugger.scriptParsed') scripts.set(params.scriptId, params.url);
    waiting.get(id ?? method)?.(result ?? params);
  };
  const event = (name: string | number) => new Promise<unknown>((resolve) => waiting.set(name, resolve));
  let calls = 0;
  return {
    /** Addresses of the files that the worker has loaded, keyed by script id. Debugger.enable fills the map. */
    scripts,
    /** Resolves to the parameters of the next event of this name, or to the result of the call with this number. */
    event,
    async call(method: string, params = {}): Promise<unknown> {
      calls += 1;
      const answer = event(calls);
      socket.send(JSON.stringify({ id: calls, method, params }));
      return answer;
    },
    close: () => socket.close(),
  };
}
