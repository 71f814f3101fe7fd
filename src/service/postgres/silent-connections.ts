// Ends the dead connections of a pool. A connection may be dead without either end knowing it, because a network drops
// packets or a node has failed. A statement on a dead connection would wait for minutes. Silence alone proves nothing,
// because a statement may run for 15 s (see migrate). This code therefore opens a new connection and asks Postgres
// whether the statement is still running.
import type { Socket } from 'node:net';
import type pg from 'pg';
import { systemClock } from '../clock.ts';
import { readBackends } from './fresh-connection.ts';
import { closeDeadConnections } from './pool-check.ts';

export interface SilenceLimits {
  /**
   * After this many milliseconds of silence during a statement, this code asks Postgres whether the statement is still
   * running. This time is longer than the timeout of that query (2 s).
   */
  suspicious: number;
  /** A connection ends after this many milliseconds of silence, regardless of what Postgres says. */
  longest: number;
}

/**
 * Returns the limits for a pool whose longest statement, or wait for a lock, takes at most `longestStatement`
 * milliseconds. `longest` exceeds this time, so that only a dead or blocked connection reaches it.
 */
export function silenceFor(longestStatement: number): SilenceLimits {
  return { suspicious: 3_000, longest: longestStatement + 5_000 };
}

/** The limits for pools whose statements have the statement timeout of the role (15 s, see migrate). */
export const silenceLimits: SilenceLimits = silenceFor(15_000);

/**
 * Maximum difference, in milliseconds, between the opening time of a connection in this process and in Postgres. The
 * clocks of the two may differ.
 */
const tolerance = 10_000;
/** After a connection was found dead, each idle connection must respond within this many milliseconds. */
const patience = 1_000;
/** The pools of this process. If a network has dropped a connection of one pool, it has probably dropped others too. */
const pools = new Set<pg.Pool>();

/**
 * Watches all connections that the pool opens. Replaces pg's `query_timeout`, whose timers kept whole requests in
 * memory until a garbage collection of the old generation (decision 0013).
 */
export function endSilentConnections(pool: pg.Pool, url: string, { suspicious, longest }: SilenceLimits): void {
  let asking: ReturnType<typeof readBackends> | undefined;
  /** Asks Postgres which statements it still runs. Connections that fall silent at the same time share one query. */
  const ask = () => {
    asking ??= readBackends(url).finally(() => {
      asking = undefined;
    });
    return asking;
  };

  function watch(client: pg.PoolClient): void {
    const stream = client.connection.stream as Socket;
    const opened = systemClock().getTime();
    // Value of `bytesWritten` when Postgres last had no statement left to answer.
    let answered = stream.bytesWritten;
    client.on('drain', () => {
      answered = stream.bytesWritten;
    });
    let silence = { bytes: 0, since: 0 };
    const bytesNow = () => stream.bytesWritten + stream.bytesRead;

    /** True if Postgres is certainly not working on the statement. */
    async function isLost(): Promise<boolean> {
      const backend = (await ask())?.find(({ pid }) => pid === (client as { processID?: number }).processID);
      // A pooler invents process ids. A backend with the same id but another opening time belongs to another
      // connection.
      const isOurs = backend && Math.abs(backend.opened.getTime() - opened) < tolerance;
      return isOurs === true && backend.state !== 'active' && bytesNow() === silence.bytes;
    }

    async function onSilence(): Promise<void> {
      if (stream.bytesWritten <= answered) return;
      const bytes = bytesNow();
      if (bytes !== silence.bytes) silence = { bytes, since: performance.now() - suspicious };
      const isTooLong = performance.now() - silence.since >= longest;
      if (!isTooLong && !(await isLost())) return void stream.setTimeout(suspicious);
      stream.destroy(new Error('Postgres does not respond'));
      await Promise.all([...pools].map((one) => closeDeadConnections(one, patience)));
    }
    stream.on('timeout', () => void onSilence());
    stream.setTimeout(suspicious);
  }

  for (const other of pools) if (other.ending) pools.delete(other);
  pools.add(pool);
  pool.on('connect', watch);
}
