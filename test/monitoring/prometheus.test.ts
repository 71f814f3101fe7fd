// Runs Prometheus against `npm start` under load: it scrapes every process, loads the chart's rules, and has data for
// every panel of every dashboard. The scrape configuration is the one in docs/operations.md.
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { scrapeTargetsFile } from '../../dev/monitoring/scrape-targets.ts';
import { createFormgate, type Formgate } from '../../dev/start.ts';
import { addOverdue } from '../support/overdue.ts';
import { refuseFormChanges } from '../support/poison.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import {
  type DashboardFile,
  type DashboardQuery,
  dashboardFiles,
  queriesOf,
  variableQueriesOf,
  withoutFallback,
} from './dashboard-files.ts';
import { runLoad } from './load.ts';
import { type PrometheusServer, startPrometheus } from './prometheus-server.ts';
import { ruleText } from './rules.ts';

const root = join(import.meta.dirname, '../..');
const project = { namespace: 'local', release: 'npm-start' };
/** Seconds that a panel shows. */
const shown = 120;

let directory: string;
let redis: TestRedis;
let formgate: Formgate;
let prometheus: PrometheusServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-monitoring-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  await chmod(directory, 0o755);
  redis = await startTestRedis();
  const options = { port: 0, directory, fresh: false, help: false, urnPrefix: 'urn:example', redisUrl: redis.url };
  formgate = createFormgate(options, { done: () => undefined, warn: () => undefined });
  const { publicUrl, forms } = await formgate.start();
  prometheus = await startPrometheus({
    'prometheus.yml': await configuration(),
    'rules.yml': ruleText({
      matchers: Object.entries(project)
        .map(([label, value]) => `${label}="${value}"`)
        .join(','),
      evaluationSeconds: 1,
    }),
  });
  await untilScraped();
  await runLoad(publicUrl);
  await addBrokenForm(forms.databaseUrl);
  await reconcile();
  // A rate needs two scrapes with different values. The second load increases the series that the first one created.
  await untilScraped();
  await runLoad(publicUrl);
  await untilScraped();
}, 300_000);

afterAll(async () => {
  await prometheus?.close();
  await formgate?.stop();
  await redis?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Returns the documented configuration with the folder of this test, its rules, and a scrape each second. */
async function configuration(): Promise<string> {
  const page = await readFile(join(root, 'docs/operations.md'), 'utf8');
  const documented = /```yaml\n(scrape_configs:[\s\S]*?)```/.exec(page)?.[1] ?? '';
  expect(documented).toContain(`.formgate/${scrapeTargetsFile}`);
  const { scrape_configs } = parse(documented.replaceAll('.formgate/', `${directory}/`));
  const scrapes = scrape_configs.map((scrape: object) => ({ ...scrape, scrape_interval: '1s', scrape_timeout: '1s' }));
  return JSON.stringify({ scrape_configs: scrapes, rule_files: ['rules.yml'] });
}

/** Creates an overdue draft that Postgres refuses to change, and that the reconciler therefore quarantines. */
async function addBrokenForm(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  try {
    const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
    await refuseFormChanges(pool, await addOverdue(pool, { tenantId, count: 1, days: 400, name: 'broken' }));
  } finally {
    await pool.end();
  }
}

async function reconcile(): Promise<void> {
  const args = [`--env-file=${join(directory, 'reconciler.env')}`, join(root, 'reconciler/main.ts')];
  await promisify(execFile)(process.execPath, [...args, '--accept-quarantine']);
}

/**
 * Waits until each target has more than three samples that were taken after this call, so that the rules have been
 * evaluated with new samples.
 */
async function untilScraped(): Promise<void> {
  const from = Date.now();
  for (const deadline = from + 60_000; Date.now() < deadline; await delay(250)) {
    const seconds = Math.floor((Date.now() - from) / 1_000);
    const [sample] = seconds > 0 ? await prometheus.query(`min(count_over_time(up[${seconds}s]))`) : [];
    if ((sample?.values[0] ?? 0) > 3) return;
  }
  throw new Error('After 60 s, Prometheus has at most three new samples of some target of npm start.');
}

it('all targets are up', async () => {
  const { activeTargets } = (await prometheus.get('targets')) as {
    activeTargets: { labels: object; health: string }[];
  };
  const states = activeTargets.map(({ labels, health }) => ({ ...labels, health }));
  expect(states).toEqual(
    expect.arrayContaining(
      ['forms', 'token-handler', 'platform-server'].map((job) =>
        expect.objectContaining({ ...project, job, pod: `${job}-0`, health: 'up' }),
      ),
    ),
  );
  expect(states).toHaveLength(3);
});

describe('the rules of the chart', () => {
  type Rule = { name: string; type: string; health: string; lastError: string };
  const loaded = async () => {
    const { groups } = (await prometheus.get('rules')) as { groups: { rules: Rule[] }[] };
    return groups.flatMap(({ rules }) => rules);
  };

  it('load and are evaluated without an error', async () => {
    const rules = await loaded();
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  });

  it('record values', async () => {
    const recorded = new Set((await loaded()).filter(({ type }) => type === 'recording').map(({ name }) => name));
    const isSignal = (name: string) => name.startsWith('formgate:sli_burning:');
    for (const name of recorded) {
      const samples = await prometheus.query(name);
      // Signals are left out: their series exist only while an error budget burns too fast, which does not happen here.
      if (!isSignal(name))
        expect(
          samples.flatMap(({ values }) => values),
          name,
        ).not.toEqual([]);
    }
  });
});

it('every panel that may be empty exists', () => {
  const names = dashboardFiles().flatMap((dashboard) => queriesOf(dashboard).map((query) => nameOf(dashboard, query)));
  expect([...mayBeEmpty].filter((name) => !names.includes(name))).toEqual([]);
});

describe.each(dashboardFiles().map((file) => [file.title, file]))('%s', (_title, dashboard) => {
  /** Replaces Grafana's variables with values that a reader would choose. */
  async function chosen(expr: string): Promise<string> {
    const variables: Record<string, string> = { ...project, __rate_interval: '30s', __range: `${shown}s`, pod: '.*' };
    const [jobs] = variableQueriesOf(dashboard).filter(({ name }) => name === 'job');
    const series = replaceVariables(jobs?.metric ?? '', variables);
    const found = (await prometheus.query(`group by (job) (${series})`)).map(({ metric }) => metric.job);
    return replaceVariables(expr, { ...variables, job: `(${found.join('|')})` });
  }

  it('finds values for its variables', async () => {
    for (const { name, metric, label } of variableQueriesOf(dashboard)) {
      const samples = await prometheus.query(`group by (${label}) (${await chosen(metric)})`);
      expect(
        samples.filter(({ metric: labels }) => labels[label]),
        name,
      ).not.toEqual([]);
    }
  });

  it('has data in every panel', async () => {
    const empty: string[] = [];
    for (const query of queriesOf(dashboard)) if (!(await hasData(query))) empty.push(nameOf(dashboard, query));
    expect(empty).toEqual([]);
  });

  it('has data without the 0 of panels whose counters have no series before the first event', async () => {
    const empty: string[] = [];
    for (const query of queriesOf(dashboard).filter(({ expr }) => withoutFallback(expr) !== expr))
      if (!(await hasData({ ...query, expr: withoutFallback(query.expr) }))) empty.push(nameOf(dashboard, query));
    expect(empty.filter((name) => !mayBeEmpty.has(name))).toEqual([]);
  });

  async function hasData({ expr, instant }: DashboardQuery): Promise<boolean> {
    const text = await chosen(expr);
    const samples = await (instant ? prometheus.query(text) : prometheus.queryRange(text, shown));
    return samples.some(({ values }) => values.some(Number.isFinite));
  }
});

function nameOf({ uid }: DashboardFile, { panel, refId }: DashboardQuery): string {
  return `${uid}: ${panel} ${refId}`;
}

function replaceVariables(expr: string, values: Record<string, string>): string {
  return expr.replace(/\$(?:\{(\w+)\}|(\w+))/g, (text, braced, plain) => values[braced ?? plain] ?? text);
}

/**
 * Queries of panels that may find no series, so that the panel shows 0. Their series appear only after events that do
 * not happen in this test, or only on a busy machine.
 */
const mayBeEmpty = new Set([
  'formgate-background: Core clients by condition A',
  'formgate-form-service: Server errors by route A',
  'formgate-form-service: Old responses served A',
  'formgate-form-service: Repaired registrations A',
  'formgate-form-service: Waits for a connection A',
  'formgate-form-service: Requests refused for lack of connections A',
  'formgate-form-service: Ended child processes A',
  'formgate-overview: Firing alerts A',
  'formgate-overview: Failed calls A',
  'formgate-overview: Requests refused by queues A',
  'formgate-overview: Certificates A',
  'formgate-token-handler: Token refreshes by outcome A',
  'formgate-token-handler: Refreshes that did not start A',
  'formgate-token-handler: Bodies that were too slow A',
  'formgate-token-handler: Requests refused for lack of connections to targets A',
  'formgate-token-handler: Invalid clients A',
  'formgate-token-handler: Waits for a connection A',
  'formgate-token-handler: Requests refused for lack of connections A',
]);
