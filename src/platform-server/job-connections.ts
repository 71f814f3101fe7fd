// Creates database connections with which graphile-worker retries every failed statement. Without a retry, a failure
// can end the process, because the library does not handle the rejection of the statement that marks a job as completed
// or failed. A connection attempt waits until Postgres is available again. The error of a failed statement gets a code
// for which the library retries the statement.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

export interface JobConnections {
  /** The pool for graphile-worker. No other code may use it. */
  pool: pg.Pool;
  /**
   * After this call, connection attempts and failed statements never settle. Otherwise, they would reject when the pool
   * ends.
   */
  close(): void;
}

/** Milliseconds between two attempts to connect. */
const pause = 500;

export function createJobConnections(pool: pg.Pool): JobConnections {
  let isClosed = false;

  async function connect(): Promise<pg.PoolClient> {
    for (;;) {
      if (isClosed) return new Promise(() => undefined);
      try {
        return patient(await pool.connect(), () => isClosed);
      } catch {
        await sleep(pause, undefined, { ref: false });
      }
    }
  }

  type Callback = (error: undefined, client: pg.PoolClient, release: () => void) => void;
  const connectWith = (callback?: Callback) =>
    callback ? void connect().then((client) => callback(undefined, client, client.release)) : connect();
  return {
    pool: override(pool, { connect: connectWith }),
    close() {
      isClosed = true;
    },
  };
}

function patient(client: pg.PoolClient, isClosed: () => boolean): pg.PoolClient {
  let isHeld = true;
  const run: (...statement: unknown[]) => Promise<pg.QueryResult> = client.query.bind(client);
  return override(client, {
    query: (...statement: unknown[]) =>
      run(...statement).catch((error: unknown) => {
        if (isClosed()) return new Promise(() => undefined);
        throw new RetryableError(error);
      }),
    // The library may release its listening client twice, but the pool throws at the second release.
    release(broken?: Error | boolean) {
      if (isHeld) client.release(broken);
      isHeld = false;
    },
  });
}

/**
 * An error with the code `cannot_connect_now`. The library retries a statement with this code 100 times, for an hour or
 * more.
 */
class RetryableError extends Error {
  readonly code = '57P03';

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : 'a statement failed', { cause });
    this.name = 'RetryableError';
  }
}

/** Returns `target` with some members replaced. */
function override<T extends object>(target: T, members: Record<string, unknown>): T {
  return new Proxy(target, {
    get: (_, key) => (typeof key === 'string' && Object.hasOwn(members, key) ? members[key] : Reflect.get(target, key)),
  });
}
