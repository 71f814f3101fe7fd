// The versions bench compares this checkout with another: `npm run bench -- versions /path/to/other/checkout`. Each run
// starts both versions with empty data and measures them in turn, so that a drift of the machine's speed affects both
// alike. A run yields one ratio for each operation; the report is their mean with a 95 % confidence interval.
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Contender, forkContender, serviceContender } from './contender.ts';
import { createTokens, stopWaitingForDisk } from './forms-drafts.ts';
import { compareSteady, steadyLoad } from './latency.ts';
import { type Load, load, median } from './load.ts';
import { measureRounds } from './rounds.ts';
import { meanOf, ratioOf, written } from './statistics.ts';

const runs = Number(process.env.BENCH_RUNS || 5);
const rounds = Number(process.env.BENCH_ROUNDS || 10);
const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 4_000);
const warmUp = Number(process.env.BENCH_WARM_UP || 40_000);
const slices = Number(process.env.BENCH_SLICES || 20);
/** The comparisons to run: `proxy`, `forms` or both. */
const compared = (process.env.BENCH_COMPARE || 'proxy,forms').split(',');
const thisCheckout = join(import.meta.dirname, '../..');

interface Service extends Contender {
  url: string;
  /** Returns the requests, with an access token that does not expire during a turn. */
  requests(): Promise<Load['requests']>;
  connections: number;
}
type Operation = 'proxy GET' | 'forms PUT' | 'forms GET';

/** One version's services under load. */
interface World {
  service(operation: Operation): Service;
  close(): Promise<void>;
}

interface Ratios {
  /** Requests per CPU second of this checkout, divided by those of the other. */
  cpu: number;
  /** Requests per second of this checkout, divided by those of the other. */
  rate: number;
  /** 99th percentile of latency at half load of this checkout, divided by that of the other. Lower is better. */
  p99: number;
}

export async function benchVersions(other = ''): Promise<void> {
  if (!other) throw new Error('name the other checkout: npm run bench -- versions DIRECTORY');
  const results = new Map<Operation, Ratios[]>();
  const all = [
    { name: 'proxy', start: startProxy, operations: ['proxy GET'] },
    { name: 'forms', start: startForms, operations: ['forms PUT', 'forms GET'] },
  ] as const;
  for (let run = 0; run < runs; run += 1)
    for (const { start, operations } of all.filter(({ name }) => compared.includes(name))) {
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
    const estimate = (of: keyof Ratios) => written(meanOf(ratios.map((ratio) => ratio[of])), 3);
    console.log(`  ${operation}   requests per CPU second  ${estimate('cpu')}`);
    console.log(`  ${operation}   requests per second      ${estimate('rate')}`);
    console.log(`  ${operation}   p99 at half load         ${estimate('p99')}`);
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
    service: () => ({ ...contender, url: world.url, requests: async () => requests, connections: 50 }),
    async close() {
      await world.close();
      await upstream.close();
    },
  };
}

/** Returns the file that starts all of Formgate. Before version 0.2.0, it was in src/embedded. */
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
  const { codes } = await makeDrafts(publicUrl, forms.databaseUrl, 100);
  const token = createTokens(publicUrl);
  const body = JSON.stringify({
    data: { text: 'a word and another '.repeat(210), list: [1.5, true, null] },
    files: {},
  });
  const paths = [...(codes as Map<string, string>)].map(([id, code]) => ({ path: `/form/v1/forms/${id}/data`, code }));
  const requests = async (operation: Operation): Promise<Load['requests']> => {
    const authorization = `Bearer ${await token()}`;
    return paths.map(({ path, code }) =>
      operation === 'forms PUT'
        ? { method: 'PUT', path, headers: { authorization, 'content-type': 'application/json' }, body }
        : { method: 'GET', path, headers: { authorization, 'x-form-code': code } },
    );
  };
  const contender = serviceContender('form service', forms.metricsUrl);
  return {
    service: (operation) => ({
      ...contender,
      url: forms.url,
      requests: () => requests(operation),
      connections: 100,
    }),
    close: formgate.stop,
  };
}

async function compare(here: Service, there: Service): Promise<Ratios> {
  const runners = [here, there].map((service, index) => ({
    ...{ name: index === 0 ? 'this checkout' : 'the other', cpuSeconds: service.cpuSeconds },
    run: async (amount: number) => load({ ...service, requests: await service.requests(), seconds: 600, amount }),
  }));
  const options = { title: 'versions', rounds, requests: requestsOfTurn, warmUp };
  const [own, others] = await measureRounds(runners, options);
  if (!own || !others) throw new Error('a version was not measured');
  const rate = Math.round(median(others.perSecond) / 2);
  return {
    cpu: ratioOf(own.perCpuSecond, others.perCpuSecond).value,
    rate: ratioOf(own.perSecond, others.perSecond).value,
    p99: await compareLatency(here, there, rate),
  };
}

async function compareLatency(here: Service, there: Service, rate: number): Promise<number> {
  const start = async ({ url, requests, connections }: Service) =>
    steadyLoad({ url, requests: await requests(), connections, rate });
  const steady = [await start(here), await start(there)];
  const [own, others] = await compareSteady(steady, { slices, milliseconds: 500 });
  await Promise.all(steady.map((contender) => contender.close()));
  if (!own || !others) throw new Error('a version was not measured');
  return median(own.slices.map((slice, index) => slice.p99 / (others.slices[index]?.p99 ?? Number.NaN)));
}
