// Detects a pool that fails while Postgres works, so that this pod can leave its requests to the other pods. A busy
// pool or an outage of Postgres does not count as a failure. The watch never waits in the pool's queue.
import type pg from 'pg';
import { canConnect } from './fresh-connection.ts';
import { closeDeadConnections, isFullNow, responds } from './pool-check.ts';

export interface PoolWatch {
  /** Returns the reason why the pod should get no requests. Undefined while the pool works or Postgres is down. */
  problem(): string | undefined;
  stop(): void;
}

export interface PoolWatchOptions {
  pool: pg.Pool;
  url: string;
  /** Milliseconds between two checks. */
  interval?: number;
  /** Milliseconds in which a connection must respond. */
  patience?: number;
  /** A pool without a free connection counts as stuck after this many milliseconds without a response. */
  longestSilence?: number;
  /** Called after each check. `isUp` is false if neither the pool nor a new connection works. */
  onChecked?(isUp: boolean): void;
}

export function watchPool(options: PoolWatchOptions): PoolWatch {
  const { pool, url, onChecked = () => undefined, interval = 2_000, patience = 2_000 } = options;
  // The default is longer than the statement timeout (15 s, see `migrate`), so that only lost connections are silent
  // for that long.
  const { longestSilence = 17_000 } = options;
  const stuck = watchFullPool(pool, longestSilence);
  let isBroken = false;
  let timer: NodeJS.Timeout | undefined;

  const works = async () => (stuck.isFull() ? !stuck.isStuck() : responds(pool, patience));

  async function check(): Promise<void> {
    const poolWorks = await works();
    const isUp = poolWorks || (await canConnect(url, patience));
    onChecked(isUp);
    // Checks the pool again after the new connection was opened, because Postgres may have recovered since the first
    // check.
    isBroken = isUp && !poolWorks && !(await works());
    // Closes the other free connections that do not respond, because they may be lost too.
    if (isBroken) await closeDeadConnections(pool, patience);
  }
  let isStopped = false;
  function schedule(): void {
    if (!isStopped) timer = setTimeout(() => void check().finally(schedule), interval).unref();
  }
  schedule();
  return {
    problem: () => (isBroken ? 'the connection pool fails, but a new connection to Postgres works' : undefined),
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** Watches a pool without a free connection. The pool works as long as Postgres responds on any of its connections. */
function watchFullPool(pool: pg.Pool, longestSilence: number) {
  let respondedAt = performance.now();
  let fullSince: number | undefined;
  const noteResponse = () => {
    respondedAt = performance.now();
  };
  pool.on('connect', (client) => {
    noteResponse();
    client.on('drain', noteResponse);
  });
  return {
    isFull(): boolean {
      const isFull = isFullNow(pool);
      fullSince = isFull ? (fullSince ?? performance.now()) : undefined;
      return isFull;
    },
    isStuck: () => performance.now() - Math.max(respondedAt, fullSince ?? 0) > longestSilence,
  };
}
