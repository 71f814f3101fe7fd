// The versions bench compares this checkout with another: `npm run bench -- versions /path/to/other/checkout`.
// Each run starts both with empty data and measures them by turns, so that a drift of the machine affects both alike.
// A run yields one ratio for each operation; the report is their mean with a 95 % confidence interval.
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { type Contender, forkContender, serviceContender } from './contender.ts';
import { compareSteady, steadyLoad } from './latency.ts';
import { type Load, load, median } from './load.ts';

const runs = Number(process.env.BENCH_RUNS || 5);
const rounds = Number(process.env.BENCH_ROUNDS || 5);
const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 8_000);
const warmUp = Number(process.env.BENCH_WARM_UP || 40_000);
const slices = Number(process.env.BENCH_SLICES || 20);
const thisCheckout = join(import.meta.dirname, '../..');

type Service = Contender & { url: string; requests: Load['requests']; connections: number };
type Operation = 'proxy GET' | 'forms PUT' | 'forms GET';

/** One version's services under load. */
interface World {
  service(operation: Operation): Service;
  close(): Promise<void>;
}

interface Ratios {
  /** Requests per CPU second of this checkout, divided by those of the other. */
  cpu: number;
  /** The same ratio for the 99th percentile of latency at half load. Lower is better. */
  p99: number;
}

export async function benchVersions(other = ''): Promise<void> {
  if (!other) throw new Error('name the other checkout: npm run bench -- versions DIRECTORY');
  const results = new Map<Operation, Ratios[]>();
  for (let run = 0; run < runs; run += 1)
    for (const [start, operations] of [
      [startProxy, ['proxy GET']],
      [startForms, ['forms PUT', 'forms GET']],
    ] as const) {
      const [here, there] = [await start(thisCheckout), await start(resolve(other))];
      for (const operation of operations) {
        const ratios = await compare(here.service(operation), there.service(operation));
        results.set(operation, [...(results.get(operation) ?? []), ratios]);
        console.error(`run ${run + 1} of ${runs}: ${operation} ${JSON.stringify(ratios)}`);
      }
      await here.close();
      await there.close();
    }
  console.log(`\nThis checkout divided by ${other}: mean of ${runs} runs, 95 % confidence interval`);
  for (const [operation, ratios] of results) {
    console.log(`  ${operation}   requests per CPU second  ${interval(ratios.map(({ cpu }) => cpu))}`);
    console.log(`  ${operation}   p99 at half load         ${interval(ratios.map(({ p99 }) => p99))}`);
  }
}

async function startProxy(checkout: string): Promise<World> {
  const upstream = await forkContender('upstream', 'proxy-upstream.ts', { bytes: 1_024 });
  const { url: upstreamUrl } = await upstream.ask<{ url: string }>('url');
  const { startProxyWorld, target } = await import(join(checkout, 'test/bench/proxy-world.ts'));
  const world = await startProxyWorld({ upstreamUrl, sessions: 20 });
  const requests = (world.cookies as string[]).map((Cookie) => ({
    method: 'GET' as const,
    path: `/token-handler/v1/targets/${target}/things/1?top=25`,
    headers: { Cookie, Accept: 'application/json', 'User-Agent': 'bench', 'Accept-Encoding': 'gzip, br' },
  }));
  const contender = serviceContender('token handler', world.handler.metricsUrl);
  return {
    service: () => ({ ...contender, url: world.url, requests, connections: 50 }),
    async close() {
      await world.close();
      await upstream.close();
    },
  };
}

/** Before version 0.2.0 `npm start` was in src/embedded. */
function startOf(checkout: string): string {
  const start = join(checkout, 'dev/start.ts');
  return existsSync(start) ? start : join(checkout, 'src/embedded/start.ts');
}

async function startForms(checkout: string): Promise<World> {
  const { createFormgate } = await import(startOf(checkout));
  const { makeDrafts } = await import(join(checkout, 'test/bench/forms-drafts.ts'));
  const directory = await mkdtemp(join(tmpdir(), 'formgate-bench-'));
  const silent = { done: () => undefined, warn: () => undefined };
  const formgate = createFormgate({ port: 0, directory, fresh: false, help: false, urnPrefix: 'urn:example' }, silent);
  const { publicUrl, forms } = await formgate.start();
  await stopWaitingForDisk(forms.databaseUrl);
  const { token, codes } = await makeDrafts(publicUrl, forms.databaseUrl, 100);
  const body = JSON.stringify({
    data: { text: 'a word and another '.repeat(210), list: [1.5, true, null] },
    files: {},
  });
  const authorization = `Bearer ${token}`;
  const paths = [...(codes as Map<string, string>)].map(([id, code]) => ({ path: `/form/v1/forms/${id}/data`, code }));
  const put = paths.map(({ path }) => {
    return { method: 'PUT' as const, path, headers: { authorization, 'content-type': 'application/json' }, body };
  });
  const get = paths.map(({ path, code }) => {
    return { method: 'GET' as const, path, headers: { authorization, 'x-form-code': code } };
  });
  const contender = serviceContender('form service', forms.metricsUrl);
  return {
    service: (operation) => ({
      ...contender,
      url: forms.url,
      requests: operation === 'forms PUT' ? put : get,
      connections: 100,
    }),
    close: formgate.stop,
  };
}

/** The disk is the same for both versions, and slow on shared machines. */
async function stopWaitingForDisk(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('ALTER SYSTEM SET synchronous_commit = off');
  await client.query('SELECT pg_reload_conf()');
  await client.end();
}

async function compare(here: Service, there: Service): Promise<Ratios> {
  for (const service of [here, there]) await measure(service, warmUp);
  const ratios: number[] = [];
  const rates: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Alternate the order, so that neither version always runs first.
    const order = round % 2 === 0 ? [here, there] : [there, here];
    const measured = new Map<Service, { perCpuSecond: number; perSecond: number }>();
    for (const service of order) measured.set(service, await measure(service, requestsOfTurn));
    ratios.push((measured.get(here)?.perCpuSecond ?? Number.NaN) / (measured.get(there)?.perCpuSecond ?? Number.NaN));
    rates.push(measured.get(there)?.perSecond ?? Number.NaN);
  }
  const rate = Math.round(median(rates) / 2);
  const steady = [here, there].map(({ url, requests, connections }) =>
    steadyLoad({ url, requests, connections, rate }),
  );
  const [own, others] = await compareSteady(steady, { slices, milliseconds: 500 });
  await Promise.all(steady.map((contender) => contender.close()));
  if (!own || !others) throw new Error('a version was not measured');
  const p99 = median(own.slices.map((slice, index) => slice.p99 / (others.slices[index]?.p99 ?? Number.NaN)));
  return { cpu: median(ratios), p99 };
}

async function measure({ url, requests, connections, cpuSeconds }: Service, amount: number) {
  const before = await cpuSeconds();
  const result = await load({ url, requests, connections, seconds: 120, amount });
  return { perCpuSecond: result.requests / ((await cpuSeconds()) - before), perSecond: result.perSecond };
}

/** Two-sided 95 % quantiles of Student's t distribution by degrees of freedom, from 1 to 9. */
const quantiles = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

function interval(values: number[]): string {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const half = (quantiles[values.length - 2] ?? 1.96) * Math.sqrt(variance / values.length);
  return `${mean.toFixed(3)} ± ${half.toFixed(3)}`;
}
