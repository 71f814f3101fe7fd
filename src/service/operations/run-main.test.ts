// The frame of a main, in real processes: how they start, stop, and end after an uncaught exception.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';

describe('a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-main-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function run(name: string, body: string, env: NodeJS.ProcessEnv = {}) {
    const path = join(folder, `${name}.ts`);
    const imports = ['run-main', 'serve', 'config', 'process-fields', '../http/http-app', 'log', 'metrics'];
    const lines = imports.map(
      (file) => `import * as ${basename(file).replace('-', '')} from '${join(import.meta.dirname, file)}.ts';`,
    );
    const zod = `import { z } from '${join(import.meta.dirname, '../../../node_modules/zod/index.js')}';`;
    writeFileSync(path, `${lines.join('\n')}\n${zod}\nawait runmain.runMain('${name}', async () => {\n${body}\n});\n`);
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

  const serving = `
    const { PORT, METRICS_PORT, HOST, DRAIN_DEADLINE, DRAIN_DELAY } = config.parseConfig(z.object(processfields.processFields));
    const created = log.createLogger({ name: 'main', level: 'info' });
    const slow = httpapp.route({ method: 'get', path: '/slow', summary: 'x', guards: [httpapp.anonymous], answers: {},
      handle: async (_i, _q, r) => { await new Promise((f) => setTimeout(f, 600)); r.json('finished'); } });
    const measured = metrics.createMetrics();
    const app = httpapp.createHttpApp({ log: created, metrics: measured, routes: [slow], trustedProxies: 0, corsOrigins: [], bodyLimit: 1024 });
    const running = await serve.serve({ app, host: HOST, port: PORT, metrics: measured, metricsPort: METRICS_PORT, ready: {}, drainDeadline: DRAIN_DEADLINE, drainDelay: DRAIN_DELAY, log: created, close: async () => created.info('released') });
    serve.stopOnSignals(running, created);`;
  const env = { PORT: '0', METRICS_PORT: '0', HOST: '127.0.0.1', DRAIN_DELAY: 'PT0S' };

  const failure =
    "Object.assign(new Error('canary'), { severity: 'ERROR', routine: 'x', detail: 'canary', code: '23505' })";
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
    for (const body of [`setTimeout(() => { throw ${failure}; }, 10);`, `void Promise.reject(${failure});`]) {
      const { code, output } = await run('uncaught', body).exited;
      expect(code).toBe(1);
      expect(output).not.toContain('canary');
      expect(JSON.parse(output)).toMatchObject({ level: 'fatal', err: { code: '23505' } });
    }
  });

  const fatalLines = (output: string) => output.split('\n').filter((line) => line.includes('"level":"fatal"'));

  it.each([
    ['exception', `throw ${failure};`],
    ['rejection', `void Promise.reject(${failure});`],
  ])(
    'that an uncaught %s hits while it serves logs it without values, turns unready, finishes its requests and exits 1',
    async (kind, fail) => {
      const body = `${serving}\nsetTimeout(() => { ${fail} }, 500);\nreturn running;`;
      const { exited, until } = run(`serving-${kind}`, body, { ...env, DRAIN_DELAY: 'PT0.3S' });
      const [, port, metricsPort] = /"port":(\d+),"metricsPort":(\d+)/.exec(await until('listening')) ?? [];
      const slow = fetch(`http://127.0.0.1:${port}/slow`);
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
    },
  );

  it('that keeps throwing while it drains logs a few of the exceptions, drains once and exits 1', async () => {
    const body = `${serving}\nsetInterval(() => { throw new Error('again'); }, 10);\nreturn running;`;
    const { exited } = run('throwing', body, { ...env, DRAIN_DELAY: 'PT1S' });
    const { code, output } = await exited;
    expect(code).toBe(1);
    expect(fatalLines(output)).toHaveLength(10);
    expect(output.match(/"msg":"stopped"/g)).toHaveLength(1);
  });

  it('whose drain never ends after an uncaught exception exits 1 all the same', async () => {
    const body = "setTimeout(() => { throw new Error('x'); }, 10);\nsetInterval(() => undefined, 1000);";
    const stuck = 'return { longestStop: 300, close: () => new Promise(() => undefined) };';
    expect((await run('stuck', `${body}\n${stuck}`).exited).code).toBe(1);
  });
});
