// Detects that a pool fails while Postgres works, so that this pod works worse than the other pods. A busy pool and an
// outage of Postgres do not count. The watch never waits in the pool's queue.
import type pg from 'pg';
import { within } from '../time-limit.ts';
import { canConnect } from './fresh-connection.ts';

export interface PoolWatch {
  /** Returns why the pod should get no requests, or undefined while the pool works or Postgres is down. */
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
  /** Milliseconds without a response after which a pool without a free connection counts as stuck. */
  longestSilence?: number;
  /** Called after each check with true, or with false if neither the pool nor a new connection works. */
  onChecked?(isUp: boolean): void;
}

export function watchPool(options: PoolWatchOptions): PoolWatch {
  const { pool, url, onChecked = () => undefined, interval = 2_000, patience = 2_000 } = options;
  // Longer than the statement timeout (15 s, see migrate), so that only a lost connection is silent for that long.
  const { longestSilence = 17_000 } = options;
  const stuck = watchFullPool(pool, longestSilence);
  let isBroken = false;
  let timer: NodeJS.Timeout | undefined;

  const works = async () => (stuck.isFull() ? !stuck.isStuck() : responds(pool, patience));

  async function check(): Promise<void> {
    const poolWorks = await works();
    const isUp = poolWorks || (await canConnect(url, patience));
    onChecked(isUp);
    // Checks the pool again after the new connection, because Postgres may have recovered in the meantime.
    isBroken = isUp && !poolWorks && !(await works());
    // The other free connections may be lost as well. `responds` closes those that do not respond.
    if (isBroken) await Promise.all(Array.from({ length: pool.idleCount }, () => responds(pool, patience)));
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

/** Watches a pool without a free connection. It works as long as Postgres responds on any of its connections. */
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

/** True if requests use all connections of the pool. A connection that is being opened counts as one. */
function isFullNow({ waitingCount, idleCount, totalCount, options }: pg.Pool): boolean {
  return waitingCount > 0 || (idleCount === 0 && totalCount >= options.max);
}

/**
 * True if a free connection responds, or if none became free in time because the pool is now busy. A connection that
 * does not respond is closed, so that no request gets it.
 */
async function responds(pool: pg.Pool, patience: number): Promise<boolean> {
  const connecting = pool.connect();
  let client: pg.PoolClient | undefined;
  try {
    client = await within(connecting, patience, undefined);
  } catch {
    return false;
  }
  if (!client) {
    connecting.then((late) => late.release()).catch(() => undefined);
    // Otherwise the pool opens a connection to a Postgres that does not respond.
    return isFullNow(pool);
  }
  // The pool does not listen to a borrowed connection. Without a listener, an error of the connection would end the
  // process.
  client.on('error', ignore);
  const query = client.query('SELECT 1').then(
    () => true,
    () => false,
  );
  const isAlive = await within(query, patience, false);
  client.off('error', ignore);
  client.release(!isAlive);
  return isAlive;
}

const ignore = () => undefined;
