// The proxy bench. Compares the token handler (with a session, log, metrics and limits) with programs that only proxy:
// undici in Express, http-proxy-middleware, express-http-proxy and nginx. All take turns within each round, so that a
// drift of the machine's speed affects all of them alike.
import { productionFlags } from '../support/token-handler-process.ts';
import { type Contender, forkContender, serviceContender } from './contender.ts';
import { type Figure, single, tableOf } from './figures.ts';
import { compareSteady, steadyLoad } from './latency.ts';
import { type LoadResult, load, median } from './load.ts';
import type { ProxyKind } from './plain-proxies.ts';
import { startNginx } from './proxy-nginx.ts';
import type { StreamsSettings } from './proxy-streams.ts';
import { nodeFlags, type ProxyWorld, startProxyWorld, target } from './proxy-world.ts';
import { compareTurns, figuresOfTurns, measureRounds, type Turns } from './rounds.ts';
import { type Estimate, meanOf } from './statistics.ts';

const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 4_000);
const warmUp = Number(process.env.BENCH_WARM_UP || 30_000);
const rounds = Number(process.env.BENCH_ROUNDS || 15);
const connections = 50;
const sessions = 20;
const streams = Number(process.env.BENCH_STREAMS || 5_000);
const warmUpStreams = 200;
const responseBytes = 1_024;
const prefix = `/token-handler/v1/targets/${target}`;
const path = `${prefix}/things/1?top=25`;
const slices = Number(process.env.BENCH_SLICES || 60);
const sliceMilliseconds = 500;

const mebibyte = 1_048_576;
const bareProxy = 'undici relay in Express';

type Reached = Contender & { url: string };

/** Goals: the token handler's requests per CPU second, divided by those of a contender, must be at least this ratio. */
const goals: Record<string, number> = { [bareProxy]: 0.85, 'http-proxy-middleware': 1.1 };

export async function benchProxy(): Promise<Figure[]> {
  const upstream = await forkContender('upstream', 'proxy-upstream.ts', { bytes: responseBytes });
  const { url: upstreamUrl } = await upstream.ask<{ url: string }>('url');
  const world = await startProxyWorld({ upstreamUrl, sessions });
  try {
    const service = { ...serviceContender('token handler', world.handler.metricsUrl), url: world.url };
    const idle = await service.residentBytes();
    const contenders: Reached[] = [service, ...(await startPlainProxies(upstreamUrl))];
    const turns = await measureCpu(contenders, world);
    const [own] = turns;
    if (!own) throw new Error('the token handler was not measured');
    const busy = await service.residentBytes();
    // Leave out express-http-proxy, which cannot handle this rate and would slow the other contenders down.
    const quick = contenders.filter(({ name }) => name !== 'express-http-proxy');
    const addedP99 = await compareLatency(quick, world, Math.round(median(own.perSecond) / 2));
    const perStream = await measureStreams(world, 'event-stream');
    const perWebSocket = await measureStreams(world, 'websocket');
    for (const contender of contenders) await contender.close();
    const figures = [
      ...turns.flatMap((of) => figuresOfTurns(of, 'proxied GET')),
      ...turns.slice(1).flatMap((other) => ratioFigures(own, other)),
      {
        name: `ms of p99 that the token handler adds to that of the ${bareProxy} at half load`,
        ...addedP99,
        digits: 1,
      },
      { name: 'MiB resident after the load', ...single(busy / mebibyte), most: 220, digits: 0 },
      { name: 'MiB resident, idle, with warm caches', ...single(idle / mebibyte), digits: 0 },
      { name: `KiB of an idle event stream, with ${streams} open`, ...single(perStream), most: 50, digits: 1 },
      { name: `KiB of an idle WebSocket, with ${streams} open`, ...single(perWebSocket), most: 50, digits: 1 },
    ];
    console.log(`\n${tableOf(figures)}`);
    return figures;
  } finally {
    await world.close();
    await upstream.close();
  }
}

function ratioFigures(own: Turns, other: Turns): Figure[] {
  const { cpu, rate } = compareTurns(own, other);
  const goal = goals[other.name];
  return [
    { name: `token handler ÷ ${other.name}, per CPU second`, ...cpu, ...(goal && { least: goal }), digits: 2 },
    { name: `token handler ÷ ${other.name}, per second`, ...rate, digits: 2 },
  ];
}

/** All Node programs run with the same flags. */
const flags = [...productionFlags, ...nodeFlags];

async function startPlainProxies(upstreamUrl: string): Promise<Reached[]> {
  const proxies: Reached[] = [];
  const all: ProxyKind[] = ['undici', 'http-proxy-middleware', 'express-http-proxy'];
  // BENCH_AGAINST is a comma-separated list of the contenders to run, for example to profile only one.
  const kinds = process.env.BENCH_AGAINST
    ? all.filter((kind) => process.env.BENCH_AGAINST?.split(',').includes(kind))
    : all;
  for (const kind of kinds) {
    const name = kind === 'undici' ? bareProxy : kind;
    const settings = { kind, upstreamUrl, prefix, connections: 256 };
    const proxy = await forkContender(name, 'plain-proxies.ts', settings, flags);
    proxies.push({ ...proxy, ...(await proxy.ask<{ url: string }>('url')) });
  }
  if (process.env.BENCH_AGAINST) return proxies;
  const nginx = await startNginx({ upstreamUrl, prefix, connections: 256 });
  if (!nginx) console.log('  nginx is not installed and is left out');
  return nginx ? [...proxies, nginx] : proxies;
}

function measureCpu(contenders: Reached[], world: ProxyWorld): Promise<Turns[]> {
  const runners = contenders.map((contender) => ({
    name: contender.name,
    cpuSeconds: contender.cpuSeconds,
    run: (amount: number) => run(contender, world, amount),
  }));
  return measureRounds(runners, { title: 'proxy', rounds, requests: requestsOfTurn, warmUp });
}

async function compareLatency(contenders: Reached[], world: ProxyWorld, rate: number): Promise<Estimate> {
  const steady = contenders.map(({ url }) => steadyLoad({ url, requests: requestsOf(world), connections, rate }));
  const results = await compareSteady(steady, { slices, milliseconds: sliceMilliseconds });
  await Promise.all(steady.map((contender) => contender.close()));
  console.log(
    `\nLatency at half of the token handler's load (${rate}/s), in ms (median of ${slices} slices of ${sliceMilliseconds} ms)`,
  );
  for (const [index, { p50, p99 }] of results.entries())
    console.log(`  ${contenders[index]?.name.padEnd(24)} p50 ${p50.toFixed(2)}   p99 ${p99.toFixed(2)}`);
  // Subtract the p99 values of the same round, because the speed of the machine drifts between rounds.
  const [own, proxy] = results.map(({ slices: list }) => list.map(({ p99 }) => p99));
  return meanOf((own ?? []).map((p99, round) => p99 - (proxy?.[round] ?? Number.NaN)));
}

/** Returns the memory of one idle stream of `kind`, in KiB. Uses a token handler that has not freed memory before. */
async function measureStreams(world: ProxyWorld, kind: StreamsSettings['kind']): Promise<number> {
  const handler = await world.startAnother({});
  const holder = await forkContender('streams', 'proxy-streams.ts', {});
  const settings = { kind, url: `${handler.url}${prefix}/events`, headers: { Cookie: world.cookies[0] ?? '' } };
  await holder.ask({ open: { ...settings, count: warmUpStreams } });
  const before = await handler.residentBytes();
  await holder.ask({ open: { ...settings, count: streams } });
  const after = await handler.residentBytes();
  await holder.close();
  await handler.stop();
  const each = (after - before) / streams / 1_024;
  console.log(`\n${streams} idle streams (${kind}): ${mib(before)} to ${mib(after)}, ${each.toFixed(1)} KiB each`);
  return each;
}

function run({ url }: Reached, world: ProxyWorld, amount: number): Promise<LoadResult> {
  return load({ url, requests: requestsOf(world), connections, seconds: 120, amount });
}

const requestsOf = ({ cookies }: ProxyWorld) =>
  cookies.map((Cookie) => ({
    method: 'GET' as const,
    path,
    headers: { Cookie, Accept: 'application/json', 'User-Agent': 'bench', 'Accept-Encoding': 'gzip, br' },
  }));

const mib = (bytes: number) => `${Math.round(bytes / 1_048_576)} MiB`;
