// The proxy bench. The token handler with a session, its log, metrics and limits on, against programs that only relay: a
// bare undici relay in Express, http-proxy-middleware, express-http-proxy and nginx. They take turns within each round, so
// that a drift of the machine meets all alike.
import { type Contender, forkContender, serviceContender } from './contender.ts';
import { type LoadResult, load, median } from './load.ts';
import { startNginx } from './proxy-nginx.ts';
import type { RelayKind } from './proxy-relays.ts';
import { type ProxyWorld, startProxyWorld, target } from './proxy-world.ts';

const seconds = Number(process.env.BENCH_SECONDS || 4);
const rounds = Number(process.env.BENCH_ROUNDS || 5);
const connections = 50;
const sessions = 20;
const streams = Number(process.env.BENCH_STREAMS || 5_000);
const answerBytes = 1_024;
const prefix = `/token-handler/v1/targets/${target}`;

type Reached = Contender & { url: string };

export async function benchProxy(): Promise<void> {
  const upstream = await forkContender('upstream', 'proxy-upstream.ts', { bytes: answerBytes });
  const { url: upstreamUrl } = await upstream.ask<{ url: string }>('url');
  const world = await startProxyWorld({ upstreamUrl, sessions });
  try {
    const service = { ...serviceContender('token handler', world.metricsUrl), url: world.url };
    const idle = await service.residentBytes();
    const contenders: Reached[] = [service, ...(await startRelays(upstreamUrl))];
    const rates = await compareCpu(contenders, world);
    await compareLatency(contenders, world, Math.round(median(rates) / 2));
    console.log('\nMemory');
    console.log(
      `  token handler ${mib(idle)} idle, ${mib(await service.residentBytes())} after ${connections} connections`,
    );
    await measureStreams(service, world);
    for (const contender of contenders) await contender.close();
  } finally {
    await world.close();
    await upstream.close();
  }
}

async function startRelays(upstreamUrl: string): Promise<Reached[]> {
  const relays: Reached[] = [];
  for (const kind of ['undici', 'http-proxy-middleware', 'express-http-proxy'] satisfies RelayKind[]) {
    const name = kind === 'undici' ? 'bare undici relay' : kind;
    const relay = await forkContender(name, 'proxy-relays.ts', { kind, upstreamUrl, prefix, connections: 256 });
    relays.push({ ...relay, ...(await relay.ask<{ url: string }>('url')) });
  }
  const nginx = await startNginx({ upstreamUrl, prefix, connections: 256 });
  if (!nginx) console.log('  nginx is not installed: it does not take part');
  return nginx ? [...relays, nginx] : relays;
}

/** Prints requests per CPU second and their ratios to the first contender; answers its requests per second. */
async function compareCpu(contenders: Reached[], world: ProxyWorld): Promise<number[]> {
  const perCpuSecond = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  const rates: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    for (const contender of contenders) {
      const before = await contender.cpuSeconds();
      const result = await run(contender, world);
      const used = (await contender.cpuSeconds()) - before;
      if (round < 0) continue;
      perCpuSecond.get(contender.name)?.push(result.requests / used);
      if (contender === contenders[0]) rates.push(result.perSecond);
    }
    console.error(`  round ${round + 1} of ${rounds}${round < 0 ? ' (warm-up, not counted)' : ''}`);
  }
  const [service = []] = perCpuSecond.values();
  console.log(
    `\nGET of ${answerBytes} bytes, ${connections} connections, ${sessions} sessions: requests per CPU second (median of ${rounds})`,
  );
  for (const [name, values] of perCpuSecond) {
    const ratio = median(service.map((value, index) => value / (values[index] ?? Number.NaN)));
    const said = values === service ? '' : `   token handler: ${ratio.toFixed(2)} of it`;
    console.log(`  ${name.padEnd(24)} ${String(Math.round(median(values))).padStart(6)}${said}`);
  }
  return rates;
}

async function compareLatency(contenders: Reached[], world: ProxyWorld, rate: number): Promise<void> {
  const results = new Map(contenders.map(({ name }) => [name, [] as LoadResult[]]));
  for (let round = 0; round < rounds; round += 1)
    for (const contender of contenders) results.get(contender.name)?.push(await run(contender, world, rate));
  console.log(`\nLatency at half of the token handler's load (${rate}/s), in ms (median of ${rounds})`);
  for (const [name, values] of results) {
    const [p50, p99] = [median(values.map((value) => value.p50)), median(values.map((value) => value.p99))];
    console.log(`  ${name.padEnd(24)} p50 ${p50.toFixed(2)}   p99 ${p99.toFixed(2)}`);
  }
}

async function measureStreams(service: Reached, world: ProxyWorld): Promise<void> {
  const before = await service.residentBytes();
  const holder = await forkContender('streams', 'proxy-streams.ts', {});
  const headers = { Cookie: world.cookies[0] ?? '' };
  await holder.ask({ open: { url: `${world.url}${prefix}/events`, headers, count: streams } });
  const after = await service.residentBytes();
  await holder.close();
  const each = (after - before) / streams / 1_024;
  console.log(`  ${streams} idle event streams: ${mib(before)} to ${mib(after)}, ${each.toFixed(1)} KiB each`);
}

function run({ url }: Reached, world: ProxyWorld, rate?: number): Promise<LoadResult> {
  const requests = world.cookies.map((cookie) => ({
    method: 'GET' as const,
    path: `${prefix}/things/1?top=25`,
    headers: { Cookie: cookie, Accept: 'application/json', 'User-Agent': 'bench', 'Accept-Encoding': 'gzip, br' },
  }));
  return load({ url, requests, connections, seconds, ...(rate !== undefined && { rate }) });
}

const mib = (bytes: number) => `${Math.round(bytes / 1_048_576)} MiB`;
