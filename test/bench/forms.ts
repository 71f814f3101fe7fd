// The forms bench. Three contenders run the same statements on the same rows: the form service, a minimal Express
// handler, and the bare SQL. The contenders take turns within each round, so that a drift of the machine's speed
// affects all of them alike.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFormgate } from '../../dev/start.ts';
import { productionFlags } from '../support/token-handler-process.ts';
import { type Contender, type Forked, forkContender, serviceContender } from './contender.ts';
import { type Figure, single, tableOf } from './figures.ts';
import { makeDrafts, stopWaitingForDisk } from './forms-drafts.ts';
import { compareSteady, steadyLoad } from './latency.ts';
import { type LoadResult, load, median } from './load.ts';
import { compareTurns, figuresOfTurns, measureRounds, type Turns } from './rounds.ts';
import { type Estimate, meanOf } from './statistics.ts';

const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 4_000);
const warmUp = Number(process.env.BENCH_WARM_UP || 40_000);
const rounds = Number(process.env.BENCH_ROUNDS || 15);
const slices = Number(process.env.BENCH_SLICES || 20);
const sliceMilliseconds = 500;
const connections = 100;
const operations = ['PUT', 'GET'] as const;
type Operation = (typeof operations)[number];
const mebibyte = 1_048_576;
const bareSql = 'bare SQL';
/**
 * Goals: the form service's requests per CPU second, divided by those of the minimal handler or of the bare SQL, must
 * be at least these ratios.
 */
const goals = { PUT: { handler: 0.95, sql: 0.3 }, GET: { handler: 0.9, sql: 0.3 } };

interface Arena {
  service: Contender & { url: string };
  handler: Forked & { url: string };
  sql: Forked;
  /** Returns the requests of all drafts, with an access token that does not expire during a turn. */
  requests(operation: Operation): Promise<Parameters<typeof load>[0]['requests']>;
  data: string;
}

export async function benchForms(): Promise<Figure[]> {
  const directory = await mkdtemp(join(tmpdir(), 'formgate-bench-'));
  const report = {
    done: (part: string) => console.error(`  ready  ${part}`),
    warn: (text: string) => console.error(text),
  };
  const options = { port: 0, directory, fresh: false, help: false, urnPrefix: 'urn:example' };
  const formgate = createFormgate(options, report);
  const { publicUrl, forms } = await formgate.start();
  try {
    await stopWaitingForDisk(forms.databaseUrl);
    const drafts = await makeDrafts(publicUrl, forms.databaseUrl, connections);
    const service = { ...serviceContender('form service', forms.metricsUrl), url: forms.url };
    const idle = await service.residentBytes();
    const handler = await forkContender(
      'minimal Express handler',
      'forms-handler.ts',
      drafts.settings,
      productionFlags,
    );
    const { url } = await handler.ask<{ url: string }>('url');
    const sql = await forkContender(bareSql, 'forms-sql.ts', drafts.settings, productionFlags);
    const data = formDataOf(4_096);
    const arena = { service, handler: { ...handler, url }, sql, data, requests: createRequests(drafts, data) };
    const figures: Figure[] = [];
    for (const operation of operations) figures.push(...(await compare(arena, operation)));
    const busy = await service.residentBytes();
    await Promise.all([handler.close(), sql.close()]);
    figures.push(
      { name: 'MiB resident, idle, with warm caches', ...single(idle / mebibyte), digits: 0 },
      { name: `MiB resident after ${connections} connections`, ...single(busy / mebibyte), most: 220, digits: 0 },
    );
    console.log(`\n${tableOf(figures)}`);
    return figures;
  } finally {
    await formgate.stop();
  }
}

/** Measures one operation: requests per CPU second and per second, their ratios, and latency at half load. */
async function compare(arena: Arena, operation: Operation): Promise<Figure[]> {
  const sql = (requests: number) =>
    arena.sql.ask<{ requests: number }>({ run: { operation, requests, callers: connections, data: arena.data } });
  const runners = [
    { ...arena.service, run: overHttp(arena, 'service', operation) },
    { ...arena.handler, run: overHttp(arena, 'handler', operation) },
    { ...arena.sql, run: withRate(sql) },
  ];
  const turns = await measureRounds(runners, {
    ...{ title: `forms ${operation}`, rounds, requests: requestsOfTurn, warmUp },
  });
  const [service, handler, statements] = turns as [Turns, Turns, Turns];
  const added = await compareLatency(arena, operation, Math.round(median(service.perSecond) / 2));
  const goal = goals[operation];
  return [
    ...turns.flatMap((of) => figuresOfTurns(of, operation)),
    ...ratioFigures(operation, service, handler, goal.handler),
    ...ratioFigures(operation, service, statements, goal.sql),
    { name: `${operation}: ms of p99 added to that of the minimal handler at half load`, ...added, most: 5, digits: 1 },
  ];
}

function ratioFigures(operation: Operation, own: Turns, other: Turns, least: number): Figure[] {
  const { cpu, rate } = compareTurns(own, other);
  return [
    { name: `${operation}: form service ÷ ${other.name}, per CPU second`, ...cpu, least, digits: 2 },
    { name: `${operation}: form service ÷ ${other.name}, per second`, ...rate, digits: 2 },
  ];
}

function withRate(run: (requests: number) => Promise<{ requests: number }>) {
  return async (amount: number) => {
    const started = performance.now();
    const { requests } = await run(amount);
    return { perSecond: (requests / (performance.now() - started)) * 1_000 };
  };
}

/** Returns the form service's p99 minus the minimal handler's p99, in milliseconds. */
async function compareLatency(arena: Arena, operation: Operation, rate: number): Promise<Estimate> {
  const requests = await arena.requests(operation);
  const steady = [arena.service, arena.handler].map(({ url }) => steadyLoad({ url, requests, connections, rate }));
  const [service, handler] = await compareSteady(steady, { slices, milliseconds: sliceMilliseconds });
  await Promise.all(steady.map((contender) => contender.close()));
  if (!service || !handler) throw new Error('a contender was not measured');
  const added = meanOf(service.slices.map(({ p99 }, round) => p99 - (handler.slices[round]?.p99 ?? Number.NaN)));
  return added;
}

function overHttp(arena: Arena, contender: 'service' | 'handler', operation: Operation) {
  const { url } = arena[contender];
  return async (amount: number): Promise<LoadResult> =>
    load({ url, requests: await arena.requests(operation), connections, seconds: 120, amount });
}

function createRequests(drafts: Awaited<ReturnType<typeof makeDrafts>>, data: string): Arena['requests'] {
  const body = `{"data":${data},"files":{}}`;
  const paths = [...drafts.codes].map(([formId, code]) => ({ path: `/form/v1/forms/${formId}/data`, code }));
  return async (operation) => {
    const authorization = `Bearer ${await drafts.token()}`;
    return paths.map(({ path, code }) =>
      operation === 'PUT'
        ? { method: 'PUT', path, headers: { authorization, 'content-type': 'application/json' }, body }
        : { method: 'GET', path, headers: { authorization, 'x-form-code': code } },
    );
  };
}

/** Form data of about `bytes` bytes with nested objects, a list and short texts. */
function formDataOf(bytes: number): string {
  const formData: { applicant: object; premises: object[] } = {
    applicant: { name: 'Ana Example', email: 'ana@example.com', phone: '+1 555 0100' },
    premises: [],
  };
  while (JSON.stringify(formData).length < bytes - 100)
    formData.premises.push({
      street: `${formData.premises.length} High Street`,
      city: 'Banff',
      area: 120.5,
      food: true,
    });
  return JSON.stringify(formData);
}
