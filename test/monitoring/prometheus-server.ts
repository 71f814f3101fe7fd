// Runs Debian's `prometheus` on a free port with files in a temporary folder, and queries its API.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../dev/ports.ts';
import { endWithThisProcess, failedStart, hasEnded } from '../support/child-processes.ts';

const missing = (program: string) =>
  `${program} is not installed: this test needs it. \`apt-get install ${program}\` brings it, as .ci/run does.`;
const longestStart = 60_000;

export interface Sample {
  metric: Record<string, string>;
  /** Values of the series over time, without NaN. */
  values: number[];
}

export interface PrometheusServer {
  /** Sends a GET request to /api/v1 and returns `data`. If Prometheus responds with an error, throws its message. */
  get(path: string, parameters?: Record<string, string>): Promise<unknown>;
  /** Evaluates an expression at this moment. Throws if Prometheus rejects it. */
  query(expr: string): Promise<Sample[]>;
  /** Evaluates an expression over the last `seconds`. */
  queryRange(expr: string, seconds: number): Promise<Sample[]>;
  close(): Promise<void>;
}

/** Starts Prometheus with `files`: their contents, keyed by file name. One of them is prometheus.yml. */
export async function startPrometheus(files: Record<string, string>): Promise<PrometheusServer> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-prometheus-'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const port = await findFreePort();
  const options = [
    '--config.file=prometheus.yml',
    '--storage.tsdb.path=data',
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
  ];
  const child = spawn('prometheus', options, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  endWithThisProcess(child);
  const base = `http://127.0.0.1:${port}`;
  await untilReady(child, 'prometheus', base);
  const get = (path: string, parameters: Record<string, string> = {}) => ask(base, path, parameters);
  return {
    get,
    query: async (expr) => samplesOf(await get('query', { query: expr })),
    async queryRange(expr, seconds) {
      const end = Date.now() / 1_000;
      const range = { start: String(end - seconds), end: String(end), step: '1' };
      return samplesOf(await get('query_range', { query: expr, ...range }));
    },
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      if (!hasEnded(child)) await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Waits until the server of Debian's package `program` is ready. Throws its log if it ends before. */
export async function untilReady(child: ChildProcess, program: string, base: string): Promise<void> {
  let problem = '';
  child.stderr?.on('data', (chunk: Buffer) => (problem += chunk.toString()));
  child.once('error', (error: NodeJS.ErrnoException) => {
    problem = error.code === 'ENOENT' ? missing(program) : error.message;
  });
  const isReady = () =>
    fetch(`${base}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (const deadline = Date.now() + longestStart; !(await isReady()); await delay(100)) {
    if (child.pid === undefined || hasEnded(child) || Date.now() > deadline) throw failedStart(program, child, problem);
  }
}

async function ask(base: string, path: string, parameters: Record<string, string>): Promise<unknown> {
  const response = await fetch(`${base}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  const { status, data, error } = (await response.json()) as { status: string; data: unknown; error?: string };
  if (status !== 'success') throw new Error(`${error} in ${parameters.query}`);
  return data;
}

function samplesOf(data: unknown): Sample[] {
  const { result } = data as {
    result: { metric: Record<string, string>; value?: [number, string]; values?: [number, string][] }[];
  };
  return result.map(({ metric, value, values = value ? [value] : [] }) => ({
    metric,
    values: values.map(([, text]) => Number(text)).filter((number) => !Number.isNaN(number)),
  }));
}
