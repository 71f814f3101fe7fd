import { constants } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Deed } from '../../../test/support/naughty-worker.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import { LimitedWorkers, type LimitedWorkersOptions } from './limited-workers.ts';
import { WorkerProcess } from './worker-process.ts';

const script = join(import.meta.dirname, '../../../test/support/naughty-worker.ts');
const open: LimitedWorkers<Deed, unknown>[] = [];
afterEach(() => Promise.all(open.splice(0).map((workers) => workers.close())));

function start(options: Partial<LimitedWorkersOptions> = {}) {
  const metrics: Metrics = createMetrics();
  const workers = new LimitedWorkers<Deed, unknown>({
    script,
    name: 'naughty',
    busy: 'The workers are busy.',
    metrics,
    ...options,
  });
  open.push(workers);
  const run = (deed: Deed['deed'], tenant = 'tenant') => workers.run({ tenant, member: 'm' }, () => ({ deed }));
  const count = async (name: string, labels = '') =>
    Number(
      new RegExp(`^${name}\\{worker="naughty"${labels}\\} (\\d+)`, 'm').exec(await metrics.registry.metrics())?.[1] ??
        0,
    );
  return { workers, run, count };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('a limited worker', () => {
  it('runs one job after another, and an error ends only its job', async () => {
    const { run, count } = start();
    expect(await run('count')).toEqual({ done: 1 });
    expect(await run('throw')).toEqual({ failed: 'no' });
    expect(await run('count')).toEqual({ done: 2 });
    expect(await count('formgate_worker_jobs_total', ',outcome="done"')).toBe(2);
    expect(await count('formgate_worker_kills_total')).toBe(0);
  });

  it.each(['loop', 'backtrack'] as const)('interrupts a job that takes too long: %s', async (deed) => {
    // On a busy machine, a worker may fail to report in time and is then killed. One of three workers must report.
    let workers: ReturnType<typeof start>;
    let before: unknown;
    let attempts = 0;
    do {
      workers = start({ jobMs: 300 });
      before = await workers.run('count');
      expect(await workers.run(deed)).toMatchObject({ exceeded: 'time' });
      attempts += 1;
    } while ((await workers.count('formgate_worker_kills_total')) > 0 && attempts < 3);
    // A new worker would count from zero again. A worker repeats a job that got too little CPU time, so the count may
    // grow by more than one.
    const { done } = before as { done: number };
    expect(await workers.run('count')).toEqual({ done: expect.toSatisfy((count: number) => count > done) });
    expect(await workers.count('formgate_worker_jobs_total', ',outcome="time"')).toBe(1);
  });

  it.each(['text', 'map'] as const)('that uses too much memory ends without affecting others: %s', async (deed) => {
    const { run, count } = start({ jobMs: 10_000 });
    expect(await run(deed)).toEqual({ exceeded: 'memory', partial: deed === 'map' ? 'so far' : undefined });
    expect(await run('count')).toEqual({ done: 1 });
    expect(await count('formgate_worker_kills_total')).toBe(1);
  });

  it('that keeps much memory outside its heap after a job is replaced', async () => {
    const { run, count } = start();
    expect(await run('count')).toEqual({ done: 1 });
    expect(await run('buffer')).toEqual({ done: undefined });
    expect(await run('count')).toEqual({ done: 1 });
    expect(await count('formgate_worker_kills_total')).toBe(1);
  });

  it('that takes much memory outside its heap is ended during the job, on Linux', async () => {
    const { run, count } = start({ jobMs: 10_000 });
    const isWatched = process.platform === 'linux';
    expect(await run('buffers')).toEqual(isWatched ? { exceeded: 'memory', partial: undefined } : { done: undefined });
    expect(await count('formgate_worker_kills_total')).toBe(1);
  });

  it('that ran other jobs before it ran out of memory is replaced, and the job is retried once', async () => {
    const { run, count } = start();
    await run('count');
    expect(await run('exit')).toMatchObject({ exceeded: 'memory' });
    expect(await count('formgate_worker_kills_total')).toBe(2);
  });

  it('is replaced by a new one for the retry, even if another worker is idle', async () => {
    const { run, count } = start();
    await Promise.all([run('count', 'one'), run('count', 'two')]);
    expect(await run('exitUnlessNew')).toEqual({ done: undefined });
    expect(await count('formgate_worker_kills_total')).toBe(1);
    await Promise.all([run('count', 'one'), run('count', 'two')]);
  });

  it('ends when it is idle, and a new one starts when needed', async () => {
    const { run } = start({ idleMs: 50 });
    expect(await run('count')).toEqual({ done: 1 });
    const { done: pid } = (await run('pid')) as { done: number };
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(await run('count')).toEqual({ done: 1 });
  });

  it('reads compiled code, which halves the time of its start', async () => {
    const { run } = start();
    expect(await run('compiled')).toEqual({ done: expect.stringContaining(process.env.NODE_COMPILE_CACHE ?? '') });
  });

  it('has a lower priority than the process that serves requests', async () => {
    const { run } = start();
    expect(await run('priority')).toEqual({ done: constants.priority.PRIORITY_BELOW_NORMAL });
  });

  it('has no environment and no network, reads only the program and writes nothing', async () => {
    const { run } = start();
    expect(await run('environment')).toEqual({ done: ['NODE_COMPILE_CACHE', 'NODE_COMPILE_CACHE_READONLY'] });
    await run('connect');
    for (const deed of ['read', 'write', 'writeCompiled', 'refusal'] as const)
      expect(await run(deed)).toEqual({ done: 'ERR_ACCESS_DENIED' });
  });
});

describe('the workers', () => {
  it('keep one of two free for other tenants', async () => {
    const { run } = start({ jobMs: 1_000, waitMs: 1_500 });
    await Promise.all([run('count', 'one'), run('count', 'two')]);
    const hostile = Array.from({ length: 20 }, () => run('loop', 'hostile').catch((error: unknown) => error));
    const stopwatch = startStopwatch();
    for (let nth = 0; nth < 5; nth += 1) expect(await run('count', 'honest')).toHaveProperty('done');
    // If the hostile jobs occupied both workers, each of these five jobs would wait for a second.
    expect(stopwatch.stop()).toBeLessThan(4_000);
    const outcomes = await Promise.all(hostile);
    expect(outcomes.filter((one) => typeof one === 'object' && one !== null && 'exceeded' in one).length).toBeLessThan(
      5,
    );
    expect(outcomes.at(-1)).toMatchObject({ slug: 'busy', status: 503, headers: { 'Retry-After': '3' } });
  });

  it('refuse a job that is refused at its start, and run the next', async () => {
    const { workers, run } = start();
    const refuse = () => {
      throw new Error('suspended');
    };
    await expect(workers.run({ tenant: 't', member: 'm' }, refuse)).rejects.toThrow('suspended');
    expect(await run('count')).toEqual({ done: 1 });
  });

  it('ask for the data of a job only when one of them is free', async () => {
    const { workers } = start();
    const requester = { tenant: 't', member: 'm' };
    const first = Promise.withResolvers<Deed>();
    const asked: string[] = [];
    const running = workers.run(requester, () => {
      asked.push('first');
      return first.promise;
    });
    const waiting = workers.run(requester, async () => {
      asked.push('second');
      return { deed: 'count' };
    });
    await turn();
    expect(asked).toEqual(['first']);
    first.resolve({ deed: 'count' });
    expect([await running, await waiting]).toEqual([{ done: 1 }, { done: 2 }]);
    expect(asked).toEqual(['first', 'second']);
  });

  it('return 503 if none can be started', async () => {
    const { run } = start({ script: '/nowhere/worker.ts' });
    await expect(run('count')).rejects.toMatchObject({ slug: 'unavailable', status: 503 });
  });

  it('do not start after they were closed', async () => {
    const { workers, run } = start();
    await run('count');
    await workers.close();
    await expect(run('count')).rejects.toMatchObject({ slug: 'unavailable' });
  });

  it('refuse a job that they end because they are closed, as if it had never run', async () => {
    const { workers, run, count } = start({ jobMs: 60_000 });
    await run('count');
    const running = run('loop');
    const refused = expect(running).rejects.toMatchObject({ slug: 'unavailable', status: 503 });
    await workers.close();
    await refused;
    expect(await count('formgate_worker_jobs_total', ',outcome="time"')).toBe(0);
  });

  it('refuse a job whose worker starts while they are closed', async () => {
    const { workers } = start();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const starting = workers.run({ tenant: 'tenant', member: 'm' }, () => {
      begin();
      return { deed: 'count' };
    });
    await begun;
    await workers.close();
    await expect(starting).rejects.toMatchObject({ slug: 'unavailable', status: 503 });
  });
});

it('a worker process that has ended returns from each job', async () => {
  const worker = await WorkerProcess.start<Deed, unknown>({ script, memoryMb: 64, jobMs: 200 });
  await worker.end();
  expect(await worker.run({ deed: 'count' })).toEqual({ exceeded: 'time', partial: undefined });
});
