// A TCP proxy with network faults: latency, jitter, a limited rate, resets, refused connections, lost packets, and
// half-open connections, of which one end does not know that the other has closed. It works for any protocol.
import { createServer, type Socket, connect as toPort } from 'node:net';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { resetSocket } from '../../src/service/http/reset-socket.ts';
import { createFlow, type Flow } from './flow.ts';

export interface Conditions {
  /** Milliseconds by which each packet is delayed, in both directions. */
  latency?: number;
  /** A random number of milliseconds, up to this one, is added to `latency`. The order of the bytes is kept. */
  jitter?: number;
  /** Limit in each direction of each connection, in bytes per second. */
  bytesPerSecond?: number;
  /**
   * The direction in which nothing arrives. As with TCP, the bytes are kept and arrive when the conditions change,
   * unless the connection was reset before.
   */
  lost?: 'requests' | 'responses' | 'both';
}

export interface FaultProxy {
  port: number;
  /** Replaces the conditions, also of open connections. */
  set(conditions: Conditions): void;
  /** Resets all open connections. */
  reset(): void;
  /** Resets all open connections and refuses new ones, as if the server were not running. */
  refuse(): Promise<void>;
  /**
   * Strands the open connections, as a firewall does when it loses its state: neither bytes nor the end of a stream
   * pass in either direction. New connections work. After a minute, the proxy resets the connections to the server, as
   * a server does when its keepalive probes get no response. Postgres sends such probes
   * (src/service/postgres/migrate.ts).
   */
  strand(): void;
  /** Resets all connections. New connections go to the server on `port`. */
  retarget(port: number): void;
  /** Ends all faults. Stranded connections stay as they are, because a real network cannot repair them either. */
  heal(): Promise<void>;
  /** Number of open connections that are not stranded. */
  connections(): number;
  close(): Promise<void>;
}

/** Milliseconds after which the server's end of a stranded connection is reset. */
const keepalive = 60_000;

interface Pair {
  ends: [Socket, Socket];
  flows: [Flow, Flow];
  isStranded: boolean;
}

/**
 * Starts a proxy in front of the port `target`. `fraction` returns a number from 0 to 1, by which `jitter` is
 * multiplied.
 */
export async function startFaultProxy(target: number, fraction: () => number = Math.random): Promise<FaultProxy> {
  let to = target;
  let conditions: Conditions = {};
  const pairs = new Set<Pair>();

  function accept(incoming: Socket): void {
    const outgoing = toPort({ port: to, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    const waits = () => (conditions.latency ?? 0) + (conditions.jitter ?? 0) * fraction();
    const rate = () => conditions.bytesPerSecond;
    const isOpen = (...lost: Conditions['lost'][]) => !pair.isStranded && !lost.includes(conditions.lost);
    const pair: Pair = {
      ends: [incoming, outgoing],
      flows: [
        createFlow(incoming, outgoing, { waits, rate, isOpen: () => isOpen('requests', 'both') }),
        createFlow(outgoing, incoming, { waits, rate, isOpen: () => isOpen('responses', 'both') }),
      ],
      isStranded: false,
    };
    pairs.add(pair);
    for (const end of pair.ends) {
      end.on('error', () => undefined);
      end.once('close', (hadError) => forget(pair, end, hadError));
    }
  }

  function forget(pair: Pair, end: Socket, hadError: boolean): void {
    const other = pair.ends.find((one) => one !== end);
    if (pair.ends.every(({ destroyed }) => destroyed)) pairs.delete(pair);
    if (pair.isStranded || other?.destroyed) return;
    // After a regular close, nothing is left to do, because the flow has already passed on the end of the stream.
    if (other && (hadError || !end.readableEnded)) resetSocket(other);
  }

  const server = createServer({ noDelay: true, allowHalfOpen: true }, accept);
  const port = await listenOnLowPort(server);
  const living = () => [...pairs].filter(({ isStranded }) => !isStranded);
  const wake = () => {
    for (const { flows } of living()) for (const flow of flows) flow.wake();
  };
  const reset = () => {
    for (const { ends } of living()) for (const end of ends) resetSocket(end);
  };
  const stopListening = () => new Promise<void>((done) => (server.listening ? server.close(() => done()) : done()));
  return {
    port,
    reset,
    set(next) {
      conditions = next;
      wake();
    },
    async refuse() {
      const stopped = stopListening();
      // The server counts as closed only when its connections have ended.
      for (const { ends } of pairs) for (const end of ends) resetSocket(end);
      await stopped;
    },
    strand() {
      const stranded = living();
      for (const pair of stranded) pair.isStranded = true;
      const probe = () => {
        for (const { ends } of stranded) resetSocket(ends[1]);
      };
      setTimeout(probe, keepalive).unref();
    },
    retarget(next) {
      to = next;
      reset();
    },
    async heal() {
      conditions = {};
      if (!server.listening) await listenAt(server, port);
      wake();
    },
    connections: () => living().length,
    async close() {
      const stopped = stopListening();
      for (const { ends } of pairs) for (const end of ends) end.destroy();
      await stopped;
    },
  };
}
