// Watches whether a pool fails while Postgres works, which makes this pod worse than its siblings. It never waits in the
// pool's queue, and a pool that is merely busy, or a Postgres that is away, is no failure of the pool.
import type pg from 'pg';
import { canConnect } from './fresh-connection.ts';

export interface PoolWatch {
  /** Why the pod should get no requests; undefined while the pool works, or Postgres is away. */
  problem(): string | undefined;
  stop(): void;
}

export interface PoolWatchOptions {
  pool: pg.Pool;
  /** The pool's own. */
  url: string;
  /** Milliseconds between two checks. */
  interval?: number;
  /** Milliseconds that a connection has for its answer. */
  patience?: number;
  /** Milliseconds without an answer after which a pool without a free connection counts as stuck. */
  longestSilence?: number;
}

export function watchPool(options: PoolWatchOptions): PoolWatch {
  const { pool, url, interval = 2_000, patience = 2_000 } = options;
  // Longer than a statement may take (15 s, see migrate): only lost connections are silent for that long.
  const { longestSilence = 17_000 } = options;
  const stuck = watchFullPool(pool, longestSilence);
  let isBroken = false;
  let timer: NodeJS.Timeout | undefined;

  const works = async () => (stuck.isFull() ? !stuck.isStuck() : answers(pool, patience));

  async function check(): Promise<void> {
    // Asked again after the new connection: Postgres may have come back in between.
    isBroken = !(await works()) && (await canConnect(url, patience)) && !(await works());
    // The other free connections may be lost as well: all are asked at once, and those that do not answer are closed.
    if (isBroken) await Promise.all(Array.from({ length: pool.idleCount }, () => answers(pool, patience)));
  }
  let isStopped = false;
  function schedule(): void {
    if (!isStopped) timer = setTimeout(() => void check().finally(schedule), interval).unref();
  }
  schedule();
  return {
    problem: () => (isBroken ? 'the connection pool fails, and a new connection to Postgres works' : undefined),
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** Of a pool without a free connection nothing can be asked; it works as long as Postgres answers on any of them. */
function watchFullPool(pool: pg.Pool, longestSilence: number) {
  let answeredAt = performance.now();
  let fullSince: number | undefined;
  const answered = () => {
    answeredAt = performance.now();
  };
  pool.on('connect', (client) => {
    answered();
    client.on('drain', answered);
  });
  return {
    isFull(): boolean {
      const isFull = pool.waitingCount > 0 || (pool.idleCount === 0 && pool.totalCount >= pool.options.max);
      fullSince = isFull ? (fullSince ?? performance.now()) : undefined;
      return isFull;
    },
    isStuck: () => performance.now() - Math.max(answeredAt, fullSince ?? 0) > longestSilence,
  };
}

/**
 * Borrows a free connection for one question. A connection that does not answer is closed, so that no request gets it.
 * True where none could be borrowed in time: the pool has become busy meanwhile.
 */
async function answers(pool: pg.Pool, patience: number): Promise<boolean> {
  const connecting = pool.connect();
  let client: pg.PoolClient | undefined;
  try {
    client = await within(connecting, patience);
  } catch {
    return false;
  }
  if (!client) {
    connecting.then((late) => late.release()).catch(() => undefined);
    return true;
  }
  // The pool does not listen to a connection that is lent out; without a listener, its break would end the process.
  client.on('error', ignore);
  const asked = client.query('SELECT 1').then(
    () => true,
    () => false,
  );
  const answered = (await within(asked, patience)) ?? false;
  client.off('error', ignore);
  client.release(!answered);
  return answered;
}

const ignore = () => undefined;

/** Undefined when it takes longer. */
async function within<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), milliseconds);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
