// Listening and stopping, with real connections and a real process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { anonymous, createHttpApp, route } from './http-app.ts';
import { createMetrics } from './metrics.ts';
import { type RunningService, type ServeOptions, serve } from './serve.ts';

const { log, lines } = captureLog();
let running: RunningService | undefined;
let finish: () => void = () => undefined;
afterEach(async () => {
  finish();
  await running?.close();
  running = undefined;
});

/** `/slow` answers when `finish` is called; `/begun` has sent half of its answer by then. */
async function start(overrides: Partial<ServeOptions> = {}): Promise<RunningService> {
  const metrics = createMetrics();
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const answers = { 200: { description: 'Fine' } };
  const routes = [
    route({
      method: 'get',
      path: '/slow',
      summary: 'Slow',
      guards: [anonymous],
      answers,
      async handle(_input, _request, response) {
        await finished;
        response.json('finished');
      },
    }),
    route({
      method: 'get',
      path: '/quick',
      summary: 'Quick',
      guards: [anonymous],
      answers,
      handle: (_input, _request, response) => void response.json('quick'),
    }),
  ];
  const app = createHttpApp({ log, metrics, routes, trustedProxies: 0, corsOrigins: [], bodyLimit: 1_024 });
  const options = { app, metrics, log, host: '127.0.0.1', port: 0, metricsPort: 0, drainDeadline: 5_000 };
  running = await serve({ ...options, close: async () => undefined, ...overrides });
  return running;
}

const status = async (url: string) => (await fetch(url, { headers: { Connection: 'close' } })).status;

async function request(url: string, agent: Agent): Promise<{ status: number; connection: string; text: string }> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  const text = (await response.toArray()).join('');
  return { status: response.statusCode ?? 0, connection: response.headers.connection ?? '', text };
}

describe('a service that stops', () => {
  it('turns readiness off at once, stays alive, and still answers during the delay for load balancers', async () => {
    const { url, metricsUrl, close } = await start({ drainDelay: 300 });
    expect(await status(`${metricsUrl}/readyz`)).toBe(200);
    const closed = close();
    expect(await status(`${metricsUrl}/readyz`)).toBe(503);
    expect(await status(`${metricsUrl}/livez`)).toBe(200);
    expect(await status(`${url}/quick`)).toBe(200);
    await closed;
  });

  it('finishes the requests that run and refuses new connections', async () => {
    const { url, close } = await start();
    const slow = fetch(`${url}/slow`);
    await delay(50);
    const closed = close();
    await delay(50);
    await expect(fetch(`${url}/quick`)).rejects.toThrow();
    finish();
    expect(await (await slow).json()).toBe('finished');
    await closed;
  });

  it('does not wait for kept-alive connections, and tells each with its last answer', async () => {
    const agent = new Agent({ keepAlive: true });
    const { url, close } = await start();
    expect((await request(`${url}/quick`, agent)).connection).toBe('keep-alive');
    const slow = request(`${url}/slow`, agent);
    await delay(50);
    const begun = performance.now();
    const closed = close();
    await delay(50);
    finish();
    expect(await slow).toEqual({ status: 200, connection: 'close', text: '"finished"' });
    await closed;
    expect(performance.now() - begun).toBeLessThan(1_000);
    agent.destroy();
  });

  it('cuts what still runs at the deadline, and says so in the log', async () => {
    const { url, close } = await start({ drainDeadline: 200 });
    const slow = fetch(`${url}/slow`).then(
      () => 'answered',
      () => 'cut',
    );
    await delay(50);
    const begun = performance.now();
    await close();
    expect(await slow).toBe('cut');
    expect(performance.now() - begun).toBeLessThan(1_500);
    expect(lines().map(({ msg }) => msg)).toContain('requests were cut at the drain deadline');
  });

  it('releases what it holds after the last request and only once, however often it is told', async () => {
    const order: string[] = [];
    const { url, close } = await start({ close: async () => void order.push('released') });
    const slow = fetch(`${url}/slow`).then(() => order.push('answered'));
    await delay(50);
    const closed = Promise.all([close(), close()]);
    finish();
    await Promise.all([slow, closed]);
    await close();
    expect(order).toEqual(['answered', 'released']);
  });

  it('fails when releasing fails, and has closed its ports nevertheless', async () => {
    const { metricsUrl, close } = await start({ close: () => Promise.reject(new Error('the pool does not end')) });
    running = undefined;
    await expect(close()).rejects.toThrow('the pool does not end');
    await expect(fetch(`${metricsUrl}/livez`)).rejects.toThrow();
  });
});

describe('the metrics port', () => {
  it('answers /readyz with 503 and what the pod waits for, and /livez with 200 all the same', async () => {
    const readiness = {
      first: { store: () => undefined, identity_provider: async () => 'the credentials were rejected' },
      local: { pool: () => 'the pool fails' },
    };
    const { metricsUrl } = await start({ readiness });
    const response = await fetch(`${metricsUrl}/readyz`);
    const waitingFor = { identity_provider: 'the credentials were rejected', pool: 'the pool fails' };
    expect([response.status, await response.json()]).toEqual([503, { ready: false, draining: false, waitingFor }]);
    expect(await status(`${metricsUrl}/livez`)).toBe(200);
  });

  it('answers /metrics in the format of Prometheus, with those of the process', async () => {
    const { url, metricsUrl } = await start();
    await fetch(`${url}/quick`);
    const response = await fetch(`${metricsUrl}/metrics`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toContain('text/plain');
    expect(text).toContain('process_cpu_seconds_total');
    expect(text).toContain('http_request_duration_seconds_bucket{le="0.005",method="GET",route="/quick",status="200"}');
  });

  it('is not served on the main port', async () => {
    const { url } = await start();
    for (const path of ['/metrics', '/livez', '/readyz']) expect(await status(url + path)).toBe(404);
  });

  it('that is taken stops the start, and the main port is let go', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const metricsPort = (taken.address() as { port: number }).port;
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as { port: number };
    await new Promise((resolve) => free.close(resolve));
    await expect(start({ port, metricsPort })).rejects.toThrow('EADDRINUSE');
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    taken.close();
  });
});

describe('a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-main-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function run(name: string, body: string, env: NodeJS.ProcessEnv = {}) {
    const path = join(folder, `${name}.ts`);
    const imports = ['run-main', 'serve', 'config', 'process-fields', 'http-app', 'log', 'metrics'];
    const lines = imports.map(
      (file) => `import * as ${file.replace('-', '')} from '${join(import.meta.dirname, file)}.ts';`,
    );
    const zod = `import { z } from '${join(import.meta.dirname, '../../node_modules/zod/index.js')}';`;
    writeFileSync(path, `${lines.join('\n')}\n${zod}\nawait runmain.runMain('${name}', async () => {\n${body}\n});\n`);
    const child = spawn(process.execPath, [path], { env: { PATH: process.env.PATH, ...env } });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const exited = once(child, 'close').then(([code]) => ({ code: code as number | null, output }));
    const until = async (text: string) => {
      for (let waited = 0; !output.includes(text) && waited < 10_000; waited += 20) await delay(20);
      return output;
    };
    return { child, exited, until };
  }

  const serving = `
    const { PORT, METRICS_PORT, HOST, DRAIN_DEADLINE } = config.parseConfig(z.object(processfields.processFields));
    const created = log.createLogger({ name: 'main', level: 'info' });
    const slow = httpapp.route({ method: 'get', path: '/slow', summary: 'x', guards: [httpapp.anonymous], answers: {},
      handle: async (_i, _q, r) => { await new Promise((f) => setTimeout(f, 600)); r.json('finished'); } });
    const measured = metrics.createMetrics();
    const app = httpapp.createHttpApp({ log: created, metrics: measured, routes: [slow], trustedProxies: 0, corsOrigins: [], bodyLimit: 1024 });
    const running = await serve.serve({ app, host: HOST, port: PORT, metrics: measured, metricsPort: METRICS_PORT, drainDeadline: DRAIN_DEADLINE, log: created, close: async () => created.info('released') });
    serve.stopOnSignals(running, created);`;
  const env = { PORT: '0', METRICS_PORT: '0', HOST: '127.0.0.1' };

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'on %s finishes what runs, writes its last line and exits 0',
    async (signal) => {
      const { child, exited, until } = run(`stops-${signal}`, serving, env);
      const port = /"port":(\d+)/.exec(await until('listening'))?.[1];
      const slow = fetch(`http://127.0.0.1:${port}/slow`);
      await delay(200);
      child.kill(signal);
      expect(await (await slow).json()).toBe('finished');
      const { code, output } = await exited;
      expect(code).toBe(0);
      expect(output).toContain('"msg":"released"');
      expect(output).toContain('"msg":"stopped"');
    },
  );

  it('whose standard output nobody reads any more stops as on a signal, and exits 0', async () => {
    const released = serving.replace("created.info('released')", "void process.stderr.write('released')");
    const { child, exited, until } = run('unread', `${released}\nsetInterval(() => created.info('tick'), 50);`, env);
    await until('listening');
    child.stdout.destroy();
    const { code, output } = await exited;
    expect([code, child.signalCode]).toEqual([0, null]);
    expect(output).toMatch(/released$/);
  });

  it('that is stopped while nobody reads its standard output finishes its stop', async () => {
    const released = serving.replace("created.info('released')", "void process.stderr.write('released')");
    const { child, exited, until } = run('unread-stop', released, env);
    const port = /"port":(\d+)/.exec(await until('listening'))?.[1];
    child.stdout.destroy();
    const slow = fetch(`http://127.0.0.1:${port}/slow`);
    await delay(200);
    child.kill('SIGTERM');
    expect(await (await slow).json()).toBe('finished');
    const { code, output } = await exited;
    expect(code).toBe(0);
    expect(output).toMatch(/released$/);
  });

  it('whose configuration is not usable prints every problem and exits 1 before it listens', async () => {
    const { exited } = run('misconfigured', serving, { PORT: 'x', METRICS_PORT: '70000', LOG_LEVEL: 'canary' });
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(output.trimEnd().split('\n')).toEqual([
      'misconfigured: Configuration is not usable:',
      '  PORT: must be a whole number from 0 to 65535',
      '  METRICS_PORT: must be a whole number from 0 to 65535',
      expect.stringMatching(/^ {2}LOG_LEVEL: Invalid option/),
    ]);
  });

  it('that cannot start writes one log line and exits 1, whatever it has opened', async () => {
    const { exited } = run('broken', "setInterval(() => undefined, 1000); throw new Error('no store');");
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ level: 'fatal', msg: 'cannot start', err: { message: 'no store' } });
  });

  it('that fails where nothing catches writes one log line without values and exits 1', async () => {
    const failure =
      "Object.assign(new Error('canary'), { severity: 'ERROR', routine: 'x', detail: 'canary', code: '23505' })";
    for (const body of [`setTimeout(() => { throw ${failure}; }, 10);`, `void Promise.reject(${failure});`]) {
      const { code, output } = await run('uncaught', body).exited;
      expect(code).toBe(1);
      expect(output).not.toContain('canary');
      expect(JSON.parse(output)).toMatchObject({ level: 'fatal', err: { code: '23505' } });
    }
  });
});
