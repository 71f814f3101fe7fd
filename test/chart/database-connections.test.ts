// Tests the numbers of connections to Postgres in docs/operations.md, which follow from the pools of the processes and
// from the pods that the chart creates by default.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runConnections } from '../../reconciler/config.ts';
import { mostConnections } from '../../src/forms/pools.ts';
import { registerConnections } from '../../src/forms/registers/register-lock.ts';
import { jobConnections, settings } from '../../src/platform-server/config.ts';
import { changeConnections } from '../../src/token-handler/clients/clients.ts';
import { chart, helms, type KubeObject, render } from './helm.ts';

const { DATABASE_POOL_SIZE: poolSize, WORKER_CONCURRENCY: concurrency } = settings.schema.shape;
const DATABASE_POOL_SIZE = poolSize.parse(undefined);
/** The connections of one pod, and how many of them the form service uses only while registers are changed. */
const perPod: Record<string, { usual: number; registers: number }> = {
  forms: { usual: mostConnections({ DATABASE_POOL_SIZE }) - registerConnections, registers: registerConnections },
  'token-handler': { usual: DATABASE_POOL_SIZE + changeConnections, registers: 0 },
  'platform-server': {
    usual: DATABASE_POOL_SIZE + jobConnections({ WORKER_CONCURRENCY: concurrency.parse(undefined) }),
    registers: 0,
  },
};
const page = readFileSync(join(chart, '../../docs/operations.md'), 'utf8');
/** The table of connections and the paragraphs below it, on one line. */
const section = page.split('| pod | connections to Postgres |')[1]?.split('\n## ')[0]?.replace(/\s+/g, ' ') ?? '';

let pods: { component: string; replicas: number }[];
beforeAll(async () => {
  const objects = await render(helms()[0] ?? '', { files: [join(chart, 'ci/checked-values.yaml')] });
  const deployments = objects.filter(({ kind }) => kind === 'Deployment') as (KubeObject & { spec: Pods })[];
  pods = deployments.map(({ metadata, spec }) => ({
    component: metadata.labels?.['app.kubernetes.io/component'] ?? '',
    replicas: spec.replicas,
  }));
});

interface Pods {
  replicas: number;
}

const sum = (kind: 'usual' | 'registers') =>
  pods.reduce((total, { component, replicas }) => total + replicas * (perPod[component]?.[kind] ?? Number.NaN), 0);

/** A new pod is ready long before the old pod has finished its requests, so a rollout may run each pod twice. */
const peak = () => ({ usual: 2 * sum('usual') + runConnections, registers: 2 * sum('registers') });

test('the table says how many connections each pod uses', () => {
  const numbers = Object.values(perPod).map(({ usual }) => usual);
  const cells = [...section.matchAll(/\| [a-z ]+ \| (\d+)/g)].map(([, number]) => Number(number));
  expect(cells).toEqual([...numbers, runConnections]);
  expect(section).toContain(`up to ${registerConnections} more while registers are changed`);
});

test('the page says how many connections the pods use, and how many they use during an upgrade', () => {
  expect(section).toContain(
    `use ${sum('usual') + runConnections} connections, and up to ${sum('registers')} more while registers are changed`,
  );
  expect(section).toContain(
    `up to ${peak().usual} connections, and ${peak().registers} more while registers are changed`,
  );
});

test('the recommended limit, which the bundled Postgres has, suffices for an upgrade', () => {
  const recommended = Number(/`max_connections` of at least (\d+)/.exec(section)?.[1]);
  // Postgres reserves 3 connections for superusers. Health checks, readiness checks and the check of the configuration
  // open one more for each pod.
  const others = 3 + 2 * pods.reduce((total, { replicas }) => total + replicas, 0) + pods.length + 1;
  expect(recommended).toBeGreaterThanOrEqual(peak().usual + peak().registers + others);
  const start = readFileSync(join(chart, 'files/postgres/start.sh'), 'utf8');
  expect(Number(/^postgres .* -c max_connections=(\d+) /m.exec(start)?.[1])).toBe(recommended);
});
