// Tests how real processes start, stop, and end after an uncaught exception.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { openCollector } from '../../../test/support/collector.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';

describe('a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-main-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function run(name: string, body: string, env: NodeJS.ProcessEnv = {}) {
    const path = join(folder, `${name}.ts`);
    const imports = [
      'run-main',
      'run-service',
      'serve',
      'process-fields',
      'metrics',
      '../http/http-app',
      '../postgres/migrate',
      '../tracing/tracing-fields',
    ];
    const lines = imports.map(
      (file) => `import * as ${basename(file).replace('-', '')} from '${join(import.meta.dirname, file)}.ts';`,
    );
    const zod = `import { z } from '${join(import.meta.dirname, '../../../node_modules/zod/index.js')}';`;
    writeFileSync(path, [...lines, zod, body].join('\n'));
    const child = spawn(process.execPath, [path], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const exited = once(child, 'close').then(([code]) => ({ code: code as number | null, output }));
    const until = async (text: string) => {
      for (let waited = 0; !output.includes(text) && waited < 60_000; waited += 20) await delay(20);
      return output;
    };
    return { child, exited, until };
  }

  const main = (name: string, body: string) =>
    run(name, `await runmain.runMain('${name}', async () => {\n${body}\n});`);

  /** Returns the source of a service with a slow route. `extra` is code that runs after its start. */
  function service(name: string, settings: NodeJS.ProcessEnv, { extra = '', release = "log.info('released')" } = {}) {
    const body = `await runservice.runService('${name}', { schema: z.object({ ...processfields.processFields, ...tracingfields.tracingFields }) }, async ({ config, log }) => {
      const slow = httpapp.route({ method: 'get', path: '/slow', summary: 'x', guards: [httpapp.anonymous], responses: {},
        handle: async (_i, _q, r) => { process.stderr.write('begun\\n'); await new Promise((f) => setTimeout(f, 600)); r.json('finished'); } });
      const measured = metrics.createMetrics();
      const app = httpapp.createHttpApp({ log, metrics: measured, routes: [slow], trustedProxies: 0, corsOrigins: [], bodyLimit: 1024 });
      const running = await serve.serve({ app, host: config.HOST, port: config.PORT, metrics: measured, metricsPort: config.METRICS_PORT,
        drainDeadline: config.DRAIN_DEADLINE, drainDelay: config.DRAIN_DELAY, log, close: async () => ${release} });
      ${extra}
      return running;
    });`;
    return run(name, body, settings);
  }
  const env = { PORT: '0', METRICS_PORT: '0', HOST: '127.0.0.1', DRAIN_DELAY: 'PT0S' };

  const hang = "process.stderr.write('begun'); await new Promise((resolve) => setTimeout(resolve, 600_000));";
  const failure =
    "Object.assign(new Error('canary'), { severity: 'ERROR', routine: 'x', detail: 'canary', code: '23505' })";
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'finishes running requests on %s, writes its last log line and exits 0',
    async (signal) => {
      const { child, exited, until } = service(`stops-${signal}`, env);
      const port = /"port":(\d+)/.exec(await until('listening'))?.[1];
      const slow = fetch(`http://127.0.0.1:${port}/slow`);
      await until('begun');
      child.kill(signal);
      expect(await (await slow).json()).toBe('finished');
      const { code, output } = await exited;
      expect(code).toBe(0);
      expect(output).toContain('"msg":"released"');
      expect(output).toContain('"msg":"stopped"');
    },
  );

  it('sends the spans of its last requests even if its stop fails', async () => {
    const collector = await openCollector();
    onTestFinished(() => collector.close());
    const settings = { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const { child, exited, until } = service('traced', settings, { release: "Promise.reject(new Error('stuck'))" });
    const port = /"port":(\d+)/.exec(await until('listening'))?.[1];
    await (await fetch(`http://127.0.0.1:${port}/slow`)).text();
    child.kill('SIGTERM');
    const { code, output } = await exited;
    expect([code, output]).toEqual([1, expect.stringContaining('stopping failed')]);
    expect(collector.spans.map(({ name }) => name)).toContain('GET /slow');
  });

  it('stops as on a signal and exits 0 when its standard output is closed', async () => {
    const extra = "setInterval(() => log.info('tick'), 50);";
    const { child, exited, until } = service('unread', env, { extra, release: "process.stderr.write('released')" });
    await until('listening');
    child.stdout.destroy();
    const { code, output } = await exited;
    expect([code, child.signalCode]).toEqual([0, null]);
    expect(output).toMatch(/released$/);
  });

  it('finishes its stop after its standard output was closed', async () => {
    const { child, exited, until } = service('unread-stop', env, { release: "process.stderr.write('released')" });
    const port = /"port":(\d+)/.exec(await until('listening'))?.[1];
    child.stdout.destroy();
    const slow = fetch(`http://127.0.0.1:${port}/slow`);
    await until('begun');
    child.kill('SIGTERM');
    expect(await (await slow).json()).toBe('finished');
    const { code, output } = await exited;
    expect(code).toBe(0);
    expect(output).toMatch(/released$/);
  });

  it('logs every problem of its configuration in one line and exits 1 before it listens', async () => {
    const { exited } = service('misconfigured', { PORT: 'x', METRICS_PORT: '70000', LOG_LEVEL: 'canary' });
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({
      level: 'fatal',
      msg: 'invalid configuration',
      problems: [
        'PORT: must be a whole number from 0 to 65535',
        'METRICS_PORT: must be a whole number from 0 to 65535',
        expect.stringMatching(/^LOG_LEVEL: Invalid option/),
      ],
    });
  });

  it('states in one line without a stack that its port is in use', async () => {
    const taken = createServer();
    const port = await listenOnLoopback(taken);
    const { code, output } = await service('taken', { ...env, PORT: String(port) }).exited;
    taken.close();
    expect(code).toBe(1);
    const reason = `listen EADDRINUSE: address already in use 127.0.0.1:${port}`;
    expect(JSON.parse(output)).toMatchObject({ level: 'fatal', msg: 'cannot start', reason });
    expect(output).not.toContain('stack');
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)(
    'that is still starting, or is a command, exits on %s with %i, even as process 1 of a container',
    async (signal, expected) => {
      const { child, exited, until } = main(`starting-${signal}`, hang);
      await until('begun');
      child.kill(signal);
      // A process without a handler would have no exit code, and process 1 of a container would ignore the signal.
      expect((await exited).code).toBe(expected);
    },
  );

  it('that cannot start writes one log line and exits 1, even with an open timer', async () => {
    const { exited } = main('broken', "setInterval(() => undefined, 1000); throw new Error('no store');");
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ level: 'fatal', msg: 'cannot start', err: { message: 'no store' } });
  });

  it('logs an uncaught error in one line without values and exits 1', async () => {
    for (const body of [`setTimeout(() => { throw ${failure}; }, 10);`, `void Promise.reject(${failure});`]) {
      const { code, output } = await main('uncaught', body).exited;
      expect(code).toBe(1);
      expect(output).not.toContain('canary');
      expect(JSON.parse(output)).toMatchObject({ level: 'fatal', err: { code: '23505' } });
    }
  });

  it('states why the database cannot be opened, without a stack', async () => {
    const settings = "{ url: 'postgres://forms@127.0.0.1:1/x', directory: '.', patience: 0, log: {} }";
    const { code, output } = await main('refused', `await migrate.migrate(${settings});`).exited;
    expect(code).toBe(1);
    const reason = 'the database cannot be opened: its host refuses connections (ECONNREFUSED)';
    expect(JSON.parse(output)).toMatchObject({ level: 'fatal', msg: 'cannot start', reason });
    expect(output).not.toContain('stack');
  });

  const fatalLines = (output: string) => output.split('\n').filter((line) => line.includes('"level":"fatal"'));

  it.each([
    ['exception', `throw ${failure};`],
    ['rejection', `void Promise.reject(${failure});`],
  ])('becomes unready after an uncaught %s, finishes running requests and exits 1', async (kind, fail) => {
    const extra = `process.once('SIGUSR2', () => { ${fail} });`;
    const { child, exited, until } = service(`serving-${kind}`, { ...env, DRAIN_DELAY: 'PT2S' }, { extra });
    const [, port, metricsPort] = /"port":(\d+),"metricsPort":(\d+)/.exec(await until('listening')) ?? [];
    const slow = fetch(`http://127.0.0.1:${port}/slow`);
    await until('begun');
    child.kill('SIGUSR2');
    await until('fatal');
    expect((await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).status).toBe(503);
    expect(await (await slow).json()).toBe('finished');
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(output).toContain('"msg":"stopped"');
    expect(output).not.toContain('canary');
    const [line = ''] = fatalLines(output);
    expect(JSON.parse(line)).toMatchObject({ msg: 'uncaught exception', err: { code: '23505' } });
    expect(JSON.parse(line).err.stack).toMatch(/at .*serving-/);
  });

  it('logs at most ten of the exceptions that are thrown while it drains, and exits 1', async () => {
    const extra = "setInterval(() => { throw new Error('again'); }, 10);";
    const { exited } = service('throwing', { ...env, DRAIN_DELAY: 'PT2S' }, { extra });
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(fatalLines(output)).toHaveLength(10);
    expect(output.match(/"msg":"stopped"/g)).toHaveLength(1);
  });

  it('exits 1 after an uncaught exception even if its drain never ends', async () => {
    const body = "setTimeout(() => { throw new Error('x'); }, 10);\nsetInterval(() => undefined, 1000);";
    const stuck = 'return { longestStop: 300, close: () => new Promise(() => undefined) };';
    expect((await main('stuck', `${body}\n${stuck}`).exited).code).toBe(1);
  });
});
