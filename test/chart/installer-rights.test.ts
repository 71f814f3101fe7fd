// Tests that docs/operations.md lists every kind of object that the chart can create, but the built-in ClusterRole
// `admin` of Kubernetes does not permit to create.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { chart, helms, type KubeObject, render, valueSets } from './helm.ts';

/** What `admin` permits by itself. It permits custom resources only through ClusterRoles that are aggregated to it. */
const adminMayCreate = new Set([
  ...['v1 ConfigMap', 'v1 Pod', 'v1 Secret', 'v1 Service', 'v1 ServiceAccount', 'apps/v1 Deployment'],
  ...['apps/v1 StatefulSet', 'autoscaling/v2 HorizontalPodAutoscaler', 'batch/v1 CronJob', 'batch/v1 Job'],
  ...['networking.k8s.io/v1 Ingress', 'networking.k8s.io/v1 NetworkPolicy', 'policy/v1 PodDisruptionBudget'],
]);

/** The first column of the table in the section "Rights of the installer". */
const listed = readFileSync(join(chart, '../../docs/operations.md'), 'utf8')
  .split('### Rights of the installer')[1]
  ?.split('\n### ')[0]
  ?.split('\n')
  .flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1] ?? []);

let created: KubeObject[];
beforeAll(async () => {
  const [helm = ''] = helms();
  const withRules = { 'serviceMonitor.enabled': true, 'prometheusRule.enabled': true };
  const renderings = [
    ...valueSets().map((file) => ({ files: [file] })),
    { files: [join(chart, 'ci/minimal-values.yaml')], set: withRules },
  ];
  created = (await Promise.all(renderings.map((one) => render(helm, one)))).flat();
});

test('an installer with the role admin finds every object that needs a further right', () => {
  const kinds = created.filter(({ apiVersion, kind }) => !adminMayCreate.has(`${apiVersion} ${kind}`));
  const further = [...new Set(kinds.map(({ kind }) => kind))].sort();
  expect(further).toEqual([
    ...['CustomResourceDefinition', 'HTTPRoute', 'Middleware', 'PrometheusRule', 'Role', 'RoleBinding'],
    'ServiceMonitor',
  ]);
  const missing = further.filter((kind) => !listed?.some((cell) => new RegExp(`\\b${kind}\\b`).test(cell)));
  expect(missing).toEqual([]);
});

test('every kind that admin may create is one that the chart creates', () => {
  const names = new Set(created.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`));
  expect([...adminMayCreate].filter((name) => !names.has(name))).toEqual([]);
});
