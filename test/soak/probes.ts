// Samples the replicas that run for the whole time (memory, descriptors, handles, delay of the event loop) and the
// number of connections to Postgres and Redis.
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Sample as Request } from '../adversary/honest/recorder.ts';
import type { Replica } from '../adversary/world/replica.ts';
import type { World } from '../adversary/world/world.ts';
import { quantile } from '../bench/latency.ts';
import type { Quantity, Series } from './judge.ts';

const mebibyte = 1_024 * 1_024;

/**
 * The warm-up as a share of the run. It is not judged, because the memory of a new process grows while the process
 * compiles its code.
 */
export const warmUpShare = 1 / 6;

export interface Probes {
  /** Ends the sampling, and returns the series without the warm-up. */
  end(requests: Request[]): Promise<Series[]>;
}

export interface ProbeOptions {
  world: World;
  /** Milliseconds between two samples. */
  interval: number;
  /** One sample in this many also collects garbage, to measure the live memory. */
  collectEvery: number;
}

/** Starts to sample the replicas and the stores. */
export function startProbes({ world, interval, collectEvery }: ProbeOptions): Probes {
  const stopping = new AbortController();
  const { signal } = stopping;
  const started = performance.now();
  const hours = () => (performance.now() - started) / 3_600_000;
  const series = new Map<string, Series>();
  const add = (process: string, quantity: Quantity, y: number) => {
    const name = `${process} ${quantity}`;
    const own = series.get(name) ?? { process, quantity, points: [] };
    series.set(name, own);
    if (Number.isFinite(y)) own.points.push({ x: hours(), y });
  };
  const lasting = world.replicas.filter(({ place }) => place.name.endsWith('-0'));

  async function sampleReplica(replica: Replica, isCollecting: boolean): Promise<void> {
    const { name, metricsPort } = replica.place;
    const metrics = await fetchText(`http://127.0.0.1:${metricsPort}/metrics`);
    const metric = (id: string) => Number(new RegExp(`^${id} (\\S+)`, 'm').exec(metrics)?.[1] ?? Number.NaN);
    add(name, 'event-loop delay (p99)', metric('nodejs_eventloop_lag_p99_seconds') * 1_000);
    add(name, 'active handles', metric('nodejs_active_handles_total'));
    add(name, 'file descriptors', metric('process_open_fds'));
    const status = await readFile(`/proc/${replica.pid()}/status`, 'utf8');
    add(name, 'resident memory', Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024);
    if (isCollecting) add(name, 'live memory', (await replica.footprint()).liveBytes / mebibyte);
  }

  async function sampleStores(): Promise<void> {
    const { databases, redisPort } = world.addresses;
    for (const [database, count] of await countConnections(databases.administrator, databases.names))
      add(`Postgres, ${database.replace(/^soak_[0-9a-f]+_/, '')}`, 'connections', count);
    add('Redis', 'connections', await countClients(redisPort));
  }

  async function work(): Promise<void> {
    for (let turn = 0; !signal.aborted; turn += 1) {
      await Promise.all([
        ...lasting.map((replica) => sampleReplica(replica, turn % collectEvery === 0).catch(() => undefined)),
        sampleStores().catch(() => undefined),
      ]);
      await delay(interval, undefined, { signal }).catch(() => undefined);
    }
  }

  const working = work();
  return {
    async end(requests) {
      stopping.abort();
      await working;
      const end = hours();
      for (const kind of ['save', 'target GET'] as const) {
        const own = requests.filter((each) => each.kind === kind);
        const size = Math.ceil(own.length / 60);
        // The requests are ordered by their end, and their rate is steady. Parts with equal numbers of requests
        // therefore cover equal times.
        for (let part = 0; part * size < own.length; part += 1) {
          const milliseconds = own.slice(part * size, (part + 1) * size).map((each) => each.milliseconds);
          const name = `requests: ${kind}`;
          add(name, 'latency (p99)', quantile(milliseconds, 0.99));
          const last = series.get(`${name} latency (p99)`)?.points.at(-1);
          if (last) last.x = (end * (part + 0.5)) / 60;
        }
      }
      return [...series.values()]
        .map((one) => ({ ...one, points: one.points.filter(({ x }) => x >= end * warmUpShare) }))
        .filter(({ points }) => points.length >= 3);
    },
  };
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  return response.text();
}

async function countConnections(administratorUrl: string, names: string[]): Promise<Map<string, number>> {
  const client = new pg.Client({ connectionString: administratorUrl });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string; count: number }>(
      `SELECT datname AS name, count(*)::int AS count FROM pg_stat_activity WHERE datname = ANY ($1) GROUP BY datname`,
      [names],
    );
    return new Map(rows.map(({ name, count }) => [name, count]));
  } finally {
    await client.end();
  }
}

async function countClients(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  socket.setTimeout(2_000, () => socket.destroy(new Error('Redis does not respond')));
  socket.write('INFO clients\r\nQUIT\r\n');
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return Number(/connected_clients:(\d+)/.exec(text)?.[1] ?? Number.NaN);
}
