// Ends the connections of a pool that are dead although neither end knows: a network that drops packets, a failed node. A
// statement on such a connection would wait for minutes. Silence alone proves nothing, because a statement may run for
// 15 s (see migrate). So Postgres is asked over a new connection whether it still works on the statement.
import type { Socket } from 'node:net';
import type pg from 'pg';
import { systemClock } from '../clock.ts';
import { readBackends } from './fresh-connection.ts';
import { closeDeadConnections } from './pool-check.ts';

export interface SilenceLimits {
  /** Milliseconds of silence during a statement after which Postgres is asked. Longer than a question takes (2 s). */
  suspicious: number;
  /** Milliseconds of silence after which a connection ends, whatever Postgres says. */
  longest: number;
}

/** The longest is longer than the statement timeout (15 s), so that only a dead or blocked connection reaches it. */
export const silenceLimits: SilenceLimits = { suspicious: 3_000, longest: 20_000 };

/** Milliseconds that a connection may take to open: what the clocks and timers of both ends may differ by. */
const tolerance = 10_000;
/** Milliseconds in which an idle connection must respond when another one was dead. */
const patience = 1_000;

/** Replaces pg's `query_timeout`, whose timers kept whole requests in memory until a collection of the old generation (decision 0013). */
export function endSilentConnections(pool: pg.Pool, url: string, { suspicious, longest }: SilenceLimits): void {
  let asking: ReturnType<typeof readBackends> | undefined;
  /** One question serves all connections that fall silent together. */
  const ask = () => {
    asking ??= readBackends(url).finally(() => {
      asking = undefined;
    });
    return asking;
  };

  function watch(client: pg.PoolClient): void {
    const stream = client.connection.stream as Socket;
    const opened = systemClock().getTime();
    // Bytes that were sent when Postgres had answered everything.
    let answered = stream.bytesWritten;
    client.on('drain', () => {
      answered = stream.bytesWritten;
    });
    let silentFor = 0;
    let sent = 0;

    async function onSilence(): Promise<void> {
      const { bytesWritten, bytesRead } = stream;
      if (bytesWritten <= answered) return;
      silentFor = bytesWritten + bytesRead === sent ? silentFor + suspicious : suspicious;
      sent = bytesWritten + bytesRead;
      if (silentFor >= longest) return void stream.destroy(new Error(silence));
      const backend = (await ask())?.find(({ pid }) => pid === (client as { processID?: number }).processID);
      if (stream.destroyed) return;
      const isUnchanged = stream.bytesWritten + stream.bytesRead === sent;
      // A pooler invents process ids, so a backend that was opened at another time is not ours.
      const isOurs = backend && Math.abs(backend.opened.getTime() - opened) < tolerance;
      if (isUnchanged && isOurs && backend.state !== 'active') {
        stream.destroy(new Error(silence));
        await closeDeadConnections(pool, patience);
      } else stream.setTimeout(suspicious);
    }
    stream.on('timeout', () => void onSilence());
    stream.setTimeout(suspicious);
  }

  pool.on('connect', watch);
}

const silence = 'Postgres does not answer';
