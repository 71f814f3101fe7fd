// Runs tasks that must complete although no request waits for them, such as storing a change that the identity provider
// has already made. Retries a task with backoff until it succeeds or the process stops. A task whose values Postgres
// refuses is abandoned, because it would never succeed.
import { failureFields } from '../../platform/platform-error.ts';
import type { Logger } from '../../service/operations/log.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { type Backoff, retryUntilDone } from '../../service/retry.ts';
import { longestStop, within } from '../../service/time-limit.ts';

export type BackgroundTasks = ReturnType<typeof createBackgroundTasks>;

const backoff: Backoff = { first: 500, cap: 30_000 };

export function createBackgroundTasks(log: Logger) {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function run(about: Record<string, string>, work: () => Promise<void>, lastTry: boolean): Promise<void> {
    const onFailure = (error: unknown, retryInMs: number) =>
      log.warn({ ...about, retryInMs, ...failureFields(error) }, 'background task failed, retrying');
    const attempt = async () => {
      try {
        await work();
      } catch (error) {
        if (databaseProblem(error)?.slug !== 'invalid-request') throw error;
        log.error({ ...about, ...failureFields(error) }, 'background task abandoned: the database refuses its values');
      }
    };
    try {
      const isDone = await retryUntilDone(attempt, { backoff, signal: stopping.signal, onFailure });
      if (isDone || !lastTry) return;
      await attempt();
    } catch (error) {
      log.error({ ...about, ...failureFields(error) }, 'background task abandoned: the process stops');
    }
  }

  return {
    /**
     * Starts a task. `about` identifies the task in the log and must not contain secrets. When the process stops, the
     * task runs once more, unless `lastTry` is false.
     */
    untilDone(about: Record<string, string>, work: () => Promise<void>, { lastTry } = { lastTry: true }): void {
      const task = run(about, work, lastTry).finally(() => running.delete(task));
      running.add(task);
    },
    /** Stops retrying, and resolves when no task is running, after `longestStop` at most. */
    async close(): Promise<void> {
      stopping.abort();
      await within(Promise.all(running), longestStop, undefined);
    },
  };
}
