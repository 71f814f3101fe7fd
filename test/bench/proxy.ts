// The proxy bench. Compares the token handler (with a session, log, metrics and limits) with programs that only proxy:
// undici in Express, http-proxy-middleware, express-http-proxy and nginx. They take turns within each round, so that a
// drift of the machine affects all alike.
import { productionFlags } from '../support/token-handler-process.ts';
import { type Contender, forkContender, serviceContender } from './contender.ts';
import { compareSteady, steadyLoad } from './latency.ts';
import { type LoadResult, load, median } from './load.ts';
import type { ProxyKind } from './plain-proxies.ts';
import { startNginx } from './proxy-nginx.ts';
import { nodeFlags, type ProxyWorld, startProxyWorld, target } from './proxy-world.ts';

/** Each turn has a fixed number of requests, not a fixed duration, so that all contenders are equally warm. */
const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 8_000);
const warmUp = 30_000;
const rounds = Number(process.env.BENCH_ROUNDS || 5);
const connections = 50;
const sessions = 20;
const streams = Number(process.env.BENCH_STREAMS || 5_000);
const responseBytes = 1_024;
const prefix = `/token-handler/v1/targets/${target}`;
const path = `${prefix}/things/1?top=25`;
const slices = Number(process.env.BENCH_SLICES || 60);
const sliceMilliseconds = 500;

type Reached = Contender & { url: string };

export async function benchProxy(): Promise<void> {
  const upstream = await forkContender('upstream', 'proxy-upstream.ts', { bytes: responseBytes });
  const { url: upstreamUrl } = await upstream.ask<{ url: string }>('url');
  const world = await startProxyWorld({ upstreamUrl, sessions });
  try {
    const service = { ...serviceContender('token handler', world.handler.metricsUrl), url: world.url };
    const idle = await service.residentBytes();
    const contenders: Reached[] = [service, ...(await startPlainProxies(upstreamUrl))];
    const { rate, ratio } = await compareCpu(contenders, world);
    const busy = await service.residentBytes();
    // A contender that cannot handle this rate would slow the others down.
    const quick = contenders.filter(({ name }) => name !== 'express-http-proxy');
    const addedP99 = await compareLatency(quick, world, Math.round(rate / 2));
    const perStream = await measureStreams(service, world);
    console.log('\nGoals');
    console.log(`  of the bare undici proxy    at least 0.50        ${ratio.toFixed(2)}`);
    console.log(`  added p99 at half load      at most 1 ms         ${addedP99.toFixed(2)} ms`);
    console.log(`  RSS                         under 220 MiB        ${mib(idle)} idle, ${mib(busy)} after the load`);
    console.log(`  an idle event stream        at most 50 KiB       ${perStream.toFixed(1)} KiB of ${streams}`);
    for (const contender of contenders) await contender.close();
  } finally {
    await world.close();
    await upstream.close();
  }
}

/** All Node programs run with the same flags. */
const flags = [...productionFlags, ...nodeFlags];

async function startPlainProxies(upstreamUrl: string): Promise<Reached[]> {
  const proxies: Reached[] = [];
  const all: ProxyKind[] = ['undici', 'http-proxy-middleware', 'express-http-proxy'];
  // BENCH_AGAINST selects a single contender, for example to profile it.
  const kinds = process.env.BENCH_AGAINST ? all.filter((kind) => kind === process.env.BENCH_AGAINST) : all;
  for (const kind of kinds) {
    const name = kind === 'undici' ? 'bare undici proxy' : kind;
    const settings = { kind, upstreamUrl, prefix, connections: 256 };
    const proxy = await forkContender(name, 'plain-proxies.ts', settings, flags);
    proxies.push({ ...proxy, ...(await proxy.ask<{ url: string }>('url')) });
  }
  if (process.env.BENCH_AGAINST) return proxies;
  const nginx = await startNginx({ upstreamUrl, prefix, connections: 256 });
  if (!nginx) console.log('  nginx is not installed and is left out');
  return nginx ? [...proxies, nginx] : proxies;
}

/**
 * Prints requests per CPU second. Returns the first contender's requests per second, and its ratio to the second one.
 */
async function compareCpu(contenders: Reached[], world: ProxyWorld): Promise<{ rate: number; ratio: number }> {
  const perCpuSecond = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  const rates: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    for (const contender of contenders) {
      const before = await contender.cpuSeconds();
      const result = await run(contender, world, round < 0 ? warmUp : requestsOfTurn);
      const used = (await contender.cpuSeconds()) - before;
      if (round < 0) continue;
      perCpuSecond.get(contender.name)?.push(result.requests / used);
      if (contender === contenders[0]) rates.push(result.perSecond);
    }
    console.error(`  round ${round + 1} of ${rounds}${round < 0 ? ' (warm-up, not counted)' : ''}`);
  }
  const [service = []] = perCpuSecond.values();
  console.log(
    `\nGET of ${responseBytes} bytes, ${connections} connections, ${sessions} sessions: requests per CPU second (median of ${rounds})`,
  );
  const ratioTo = (values: number[]) => median(service.map((value, index) => value / (values[index] ?? Number.NaN)));
  for (const [name, values] of perCpuSecond) {
    const ratio = ratioTo(values);
    const said = values === service ? '' : `   token handler: ratio ${ratio.toFixed(2)}`;
    console.log(`  ${name.padEnd(24)} ${String(Math.round(median(values))).padStart(6)}${said}`);
  }
  return { rate: median(rates), ratio: ratioTo([...perCpuSecond.values()][1] ?? []) };
}

async function compareLatency(contenders: Reached[], world: ProxyWorld, rate: number): Promise<number> {
  const steady = contenders.map(({ url }) => steadyLoad({ url, requests: requestsOf(world), connections, rate }));
  const results = await compareSteady(steady, { slices, milliseconds: sliceMilliseconds });
  await Promise.all(steady.map((contender) => contender.close()));
  console.log(
    `\nLatency at half of the token handler's load (${rate}/s), in ms (median of ${slices} slices of ${sliceMilliseconds} ms)`,
  );
  for (const [index, { p50, p99 }] of results.entries())
    console.log(`  ${contenders[index]?.name.padEnd(24)} p50 ${p50.toFixed(2)}   p99 ${p99.toFixed(2)}`);
  // The difference is taken within each round, because the machine drifts between rounds.
  const [own, proxy] = results.map(({ slices: list }) => list.map(({ p99 }) => p99));
  return median((own ?? []).map((p99, round) => p99 - (proxy?.[round] ?? Number.NaN)));
}

/** Returns the KiB of each stream. */
async function measureStreams(service: Reached, world: ProxyWorld): Promise<number> {
  const before = await service.residentBytes();
  const holder = await forkContender('streams', 'proxy-streams.ts', {});
  const headers = { Cookie: world.cookies[0] ?? '' };
  await holder.ask({ open: { url: `${world.url}${prefix}/events`, headers, count: streams } });
  const after = await service.residentBytes();
  await holder.close();
  const each = (after - before) / streams / 1_024;
  console.log(`\n${streams} idle event streams: ${mib(before)} to ${mib(after)}, ${each.toFixed(1)} KiB each`);
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
