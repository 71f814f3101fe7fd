// The traces bench measures what traces cost a proxied request. It compares token handlers without a collector, with
// all traces recorded, and with a tenth of them recorded. The token handlers take turns within each round, so that a
// drift of the machine's speed affects all of them alike. If the directory of another checkout is given, its token
// handler takes part too.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TokenHandlerProcess } from '../support/token-handler-process.ts';
import { type Contender, forkContender, serviceContender } from './contender.ts';
import { load, median } from './load.ts';
import { type ProxyWorld, startProxyWorld, target } from './proxy-world.ts';

const rounds = Number(process.env.BENCH_ROUNDS || 7);
const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 8_000);
const warmUp = Number(process.env.BENCH_WARM_UP || 30_000);

type Traced = Contender & { url: string };

export async function benchTraces(other = ''): Promise<void> {
  const upstream = await forkContender('upstream', 'proxy-upstream.ts', { bytes: 1_024 });
  const { url: upstreamUrl } = await upstream.ask<{ url: string }>('url');
  const collector = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end());
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const world = await startProxyWorld({ upstreamUrl, sessions: 20 });
  const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const tenth = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' };
  const others: [string, TokenHandlerProcess][] = [
    ['without a collector, again', await world.startAnother({})],
    ['a tenth of the traces', await world.startAnother({ OTEL_EXPORTER_OTLP_ENDPOINT, ...tenth })],
    ['all traces', await world.startAnother({ OTEL_EXPORTER_OTLP_ENDPOINT })],
  ];
  if (other) others.push(['the other checkout', await world.startAnother({}, other)]);
  try {
    const named: [string, TokenHandlerProcess][] = [['without a collector', world.handler], ...others];
    await compare(
      named.map(([name, { metricsUrl, url }]) => ({ ...serviceContender(name, metricsUrl), url })),
      world,
    );
  } finally {
    for (const [, handler] of others) await handler.stop();
    await world.close();
    await upstream.close();
    collector.closeAllConnections();
    collector.close();
  }
}

async function compare(contenders: Traced[], world: ProxyWorld): Promise<void> {
  const perCpuSecond = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  for (let round = -1; round < rounds; round += 1) {
    for (const { name, url, cpuSeconds } of contenders) {
      const before = await cpuSeconds();
      const { requests } = await run(url, world, round < 0 ? warmUp : requestsOfTurn);
      const used = (await cpuSeconds()) - before;
      if (round >= 0) perCpuSecond.get(name)?.push(requests / used);
    }
    console.error(`  round ${round + 1} of ${rounds}${round < 0 ? ' (warm-up, not counted)' : ''}`);
  }
  const [base = []] = perCpuSecond.values();
  console.log(`\nProxied GET, requests per CPU second of the token handler (median of ${rounds} rounds)`);
  for (const [name, values] of perCpuSecond) {
    const ratios = values.map((value, index) => value / (base[index] ?? Number.NaN)).toSorted((a, b) => a - b);
    const [least = 0, most = 0] = [ratios[0], ratios.at(-1)];
    const said =
      values === base ? '' : `  ${median(ratios).toFixed(3)} of the first (${least.toFixed(3)} to ${most.toFixed(3)})`;
    console.log(`  ${name.padEnd(28)} ${String(Math.round(median(values))).padStart(6)}${said}`);
  }
}

function run(url: string, { cookies }: ProxyWorld, amount: number) {
  const requests = cookies.map((Cookie) => ({
    method: 'GET' as const,
    path: `/token-handler/v1/targets/${target}/things/1?top=25`,
    headers: { Cookie, Accept: 'application/json', 'User-Agent': 'bench', 'Accept-Encoding': 'gzip, br' },
  }));
  return load({ url, requests, connections: 10, seconds: 600, amount });
}
