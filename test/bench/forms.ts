// The forms bench. Three contenders run the same statements on the same rows: the form service, a minimal Express
// handler, and the bare SQL. They take turns within each round, so that a drift of the machine affects all alike.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createFormgate } from '../../dev/start.ts';
import { productionFlags } from '../support/token-handler-process.ts';
import { type Contender, type Forked, forkContender, serviceContender } from './contender.ts';
import { makeDrafts } from './forms-drafts.ts';
import { compareSteady, steadyLoad } from './latency.ts';
import { type LoadResult, load, median } from './load.ts';

/**
 * Each turn and the warm-up have a fixed number of requests, not a fixed duration, so that all contenders are equally
 * warm.
 */
const requestsOfTurn = Number(process.env.BENCH_REQUESTS || 8_000);
const warmUp = 40_000;
const rounds = Number(process.env.BENCH_ROUNDS || 5);
const slices = Number(process.env.BENCH_SLICES || 20);
const sliceMilliseconds = 500;
const connections = 100;
const operations = ['PUT', 'GET'] as const;
type Operation = (typeof operations)[number];

interface Arena {
  service: Contender & { url: string };
  handler: Forked & { url: string };
  sql: Forked;
  requests: Record<Operation, Parameters<typeof load>[0]['requests']>;
  data: string;
}

export async function benchForms(): Promise<void> {
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
    const sql = await forkContender('bare SQL', 'forms-sql.ts', drafts.settings, productionFlags);
    const data = formDataOf(4_096);
    const arena = { service, handler: { ...handler, url }, sql, data, requests: requestsOf(drafts, data) };
    for (const operation of operations) await compare(arena, operation);
    const busy = await service.residentBytes();
    console.log(`\nMemory of the form service: ${mib(idle)} idle, ${mib(busy)} after ${connections} connections`);
    await Promise.all([handler.close(), sql.close()]);
  } finally {
    await formgate.stop();
  }
}

/**
 * The disk is the same for every contender, and slow on shared machines. Without fsync, only the processes are
 * measured.
 */
async function stopWaitingForDisk(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('ALTER SYSTEM SET synchronous_commit = off');
  await client.query('SELECT pg_reload_conf()');
  await client.end();
}

/** Prints, for one operation, requests per CPU second, their ratios, and latency at half load. */
async function compare(arena: Arena, operation: Operation): Promise<void> {
  const perCpuSecond = { service: [] as number[], handler: [] as number[], sql: [] as number[] };
  const rates: number[] = [];
  const runs = { service: overHttp(arena, 'service', operation), handler: overHttp(arena, 'handler', operation) };
  const runSql = (requests: number) =>
    arena.sql.ask<{ requests: number }>({ run: { operation, requests, callers: connections, data: arena.data } });
  for (const run of [runs.service, runs.handler, runSql]) await run(warmUp);
  for (let round = 0; round < rounds; round += 1) {
    const service = await measure(arena.service, () => runs.service(requestsOfTurn));
    const handler = await measure(arena.handler, () => runs.handler(requestsOfTurn));
    const sql = await measure(arena.sql, () => runSql(requestsOfTurn));
    console.error(`  ${operation} round ${round + 1} of ${rounds}`);
    perCpuSecond.service.push(service.perCpuSecond);
    perCpuSecond.handler.push(handler.perCpuSecond);
    perCpuSecond.sql.push(sql.perCpuSecond);
    rates.push(service.result.perSecond);
  }
  const ratio = (other: number[]) =>
    median(perCpuSecond.service.map((value, index) => value / (other[index] ?? Number.NaN)));
  console.log(`\n${operation} data, 4 KiB, ${connections} connections, requests per CPU second (median of ${rounds})`);
  console.log(`  form service             ${Math.round(median(perCpuSecond.service))}`);
  console.log(
    `  minimal Express handler  ${Math.round(median(perCpuSecond.handler))}   ratio ${ratio(perCpuSecond.handler).toFixed(2)}`,
  );
  console.log(
    `  bare SQL                 ${Math.round(median(perCpuSecond.sql))}   ratio ${ratio(perCpuSecond.sql).toFixed(2)}`,
  );
  await compareLatency(arena, operation, Math.round(median(rates) / 2));
}

async function compareLatency(arena: Arena, operation: Operation, rate: number): Promise<void> {
  const requests = arena.requests[operation];
  const steady = [arena.service, arena.handler].map(({ url }) => steadyLoad({ url, requests, connections, rate }));
  const [service, handler] = await compareSteady(steady, { slices, milliseconds: sliceMilliseconds });
  await Promise.all(steady.map((contender) => contender.close()));
  if (!service || !handler) throw new Error('a contender was not measured');
  const added = median(service.slices.map(({ p99 }, round) => p99 - (handler.slices[round]?.p99 ?? Number.NaN)));
  console.log(
    `  p99 at half load (${rate}/s, median of ${slices} slices): ${service.p99.toFixed(1)} ms, handler ${handler.p99.toFixed(1)} ms, added ${added.toFixed(1)} ms`,
  );
}

async function measure<T extends { requests: number }>(contender: Contender, run: () => Promise<T>) {
  const before = await contender.cpuSeconds();
  const result = await run();
  return { result, perCpuSecond: result.requests / ((await contender.cpuSeconds()) - before) };
}

function overHttp(arena: Arena, contender: 'service' | 'handler', operation: Operation) {
  const { url } = arena[contender];
  const requests = arena.requests[operation];
  return (amount: number): Promise<LoadResult> => load({ url, requests, connections, seconds: 120, amount });
}

function requestsOf(drafts: Awaited<ReturnType<typeof makeDrafts>>, data: string): Arena['requests'] {
  const authorization = `Bearer ${drafts.token}`;
  const body = `{"data":${data},"files":{}}`;
  const paths = [...drafts.codes].map(([formId, code]) => ({ path: `/form/v1/forms/${formId}/data`, code }));
  return {
    PUT: paths.map(({ path }) => ({
      method: 'PUT',
      path,
      headers: { authorization, 'content-type': 'application/json' },
      body,
    })),
    GET: paths.map(({ path, code }) => ({ method: 'GET', path, headers: { authorization, 'x-form-code': code } })),
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

const mib = (bytes: number) => `${Math.round(bytes / 1_048_576)} MiB`;
