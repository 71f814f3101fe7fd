// Starts processes of the product from the code of this version or of the old version. As in a cluster, only
// environment variables configure them.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { noticeStream } from '../support/captured-log.ts';
import { endWithThisProcess } from '../support/child-processes.ts';

export type Version = 'old' | 'new';
export type Service = 'platform-server' | 'forms' | 'token-handler';

export interface Product {
  url: string;
  metricsUrl: string;
  version: Version;
  logText(): string;
  /** Sends SIGTERM, and waits for the process to end. */
  stop(): Promise<void>;
  /** Sends SIGKILL, and waits for the process to end. */
  kill(): Promise<void>;
}

export interface Launch {
  /** Folder with the code of the version to start. */
  folder: string;
  version: Version;
  /** Milliseconds to add to the machine's time in this process. */
  shift: number;
  env: Record<string, string>;
}

const shiftedProcess = import.meta.resolve('./shifted-process.ts');
const project = join(import.meta.dirname, '../..');

function launch(main: string, { folder, version, shift, env }: Launch, args: string[] = []): ChildProcess {
  const child = spawn(
    process.execPath,
    [...(shift === 0 ? [] : [`--import=${shiftedProcess}`]), join(folder, main), ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: join(project, 'node_modules/.cache', version === 'old' ? 'formgate-old' : 'formgate'),
        TEST_TIME_SHIFT: String(shift),
        ...env,
      },
    },
  );
  endWithThisProcess(child);
  return child;
}

function collect(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) noticeStream(stream);
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  return () => text;
}

/** Resolves when the process is ready. If the process ends before, throws an error with its log. */
export async function startProduct(service: Service, how: Launch): Promise<Product> {
  const env = { HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', DRAIN_DEADLINE: 'PT5S', ...how.env };
  const child = launch(join('src', service, 'main.ts'), { ...how, env });
  const logText = collect(child);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (hasEnded()) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  for (const deadline = performance.now() + 240_000; performance.now() < deadline && !hasEnded(); await sleep(25)) {
    const { port, metricsPort } = listening.exec(logText())?.groups ?? {};
    if (port === undefined || metricsPort === undefined) continue;
    const metricsUrl = `http://127.0.0.1:${metricsPort}`;
    if (!(await isReady(metricsUrl))) continue;
    const url = `http://127.0.0.1:${port}`;
    return {
      ...{ url, metricsUrl, version: how.version, logText },
      stop: () => end('SIGTERM'),
      kill: () => end('SIGKILL'),
    };
  }
  await end('SIGKILL');
  throw new Error(`The ${service} of the ${how.version} version did not become ready: ${logText()}`);
}

const listening = /"port":(?<port>\d+),"metricsPort":(?<metricsPort>\d+)/;
const isReady = (metricsUrl: string) =>
  fetch(`${metricsUrl}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

/** Runs the reconciler once. If it fails, throws an error with its log. */
export async function runReconciler(how: Launch): Promise<string> {
  const child = launch('reconciler/main.ts', how);
  const logText = collect(child);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`The reconciler of the ${how.version} version ended with ${code}: ${logText()}`);
  return logText();
}
