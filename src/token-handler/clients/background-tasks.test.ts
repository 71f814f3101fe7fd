// Tests tasks that must complete although no request waits for them.
import { describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { createBackgroundTasks } from './background-tasks.ts';

const about = { task: 'store', client: 'permits-web' };
const outage = () => Promise.reject(new PlatformError('events', 'failed', { upstreamStatus: 503 }));
const pause = () => new Promise((resolve) => setTimeout(resolve, 10));

describe('a background task', () => {
  it('runs once if it succeeds, also if the process stops afterwards', async () => {
    const { log, lines } = captureLog();
    const tasks = createBackgroundTasks(log);
    let runs = 0;
    tasks.untilDone(about, async () => {
      runs += 1;
    });
    expect(runs).toBe(1);
    await pause();
    await tasks.close();
    expect([runs, lines()]).toEqual([1, []]);
  });

  it('is retried after at most half a second, which the log says with the failure', async () => {
    const { log, lines } = captureLog();
    const tasks = createBackgroundTasks(log);
    let runs = 0;
    tasks.untilDone(about, () => {
      runs += 1;
      return runs === 1 ? outage() : Promise.resolve();
    });
    await pause();
    expect(lines()).toMatchObject([
      { ...about, level: 'warn', msg: 'background task failed, retrying', kind: 'failed', dependency: 'events' },
    ]);
    expect(lines()[0]?.retryInMs).toBeGreaterThanOrEqual(250);
    expect(lines()[0]?.retryInMs).toBeLessThanOrEqual(500);
    expect(runs).toBe(1);
    await expect.poll(() => runs).toBe(2);
    await tasks.close();
    expect(runs).toBe(2);
  });

  it('is abandoned if the database cannot store its values', async () => {
    const { log, lines } = captureLog();
    const tasks = createBackgroundTasks(log);
    const refused = Object.assign(new Error('unsupported Unicode escape sequence'), {
      code: '22P05',
      severity: 'ERROR',
    });
    let runs = 0;
    tasks.untilDone(about, () => {
      runs += 1;
      return Promise.reject(refused);
    });
    await pause();
    expect(lines()).toMatchObject([
      { ...about, level: 'error', msg: 'background task abandoned: the database refuses its values' },
    ]);
    await tasks.close();
    expect(runs).toBe(1);
  });

  it('is tried once more when the process stops, and the process waits for it', async () => {
    const { log, lines } = captureLog();
    const tasks = createBackgroundTasks(log);
    const ran: string[] = [];
    tasks.untilDone(about, async () => {
      ran.push('began');
      if (ran.length === 1) return outage();
      await pause();
      ran.push('ended');
    });
    await pause();
    await tasks.close();
    expect(ran).toEqual(['began', 'began', 'ended']);
    expect(lines()).toHaveLength(1);
  });

  it('is abandoned if the last try fails, which the log says', async () => {
    const { log, lines } = captureLog();
    const tasks = createBackgroundTasks(log);
    tasks.untilDone(about, outage);
    await pause();
    await tasks.close();
    expect(lines()[1]).toMatchObject({ ...about, level: 'error', kind: 'failed', dependency: 'events' });
    expect(lines()[1]?.msg).toContain('abandoned');
    expect(lines()).toHaveLength(2);
  });

  it('is not tried once more if it is not worth it', async () => {
    const { log, lines } = captureLog();
    const tasks = createBackgroundTasks(log);
    let runs = 0;
    tasks.untilDone(
      about,
      () => {
        runs += 1;
        return outage();
      },
      { lastTry: false },
    );
    await pause();
    await tasks.close();
    expect([runs, lines().length]).toEqual([1, 1]);
  });
});
