// Runs the rendered alert FormgateServiceDown through promtool: with the ServiceMonitor, the alert fires for as long as
// an outage lasts.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runWithFiles } from '../monitoring/promtool.ts';
import { type RuleFile, rulesOf } from '../monitoring/rules.ts';
import { type AlertCase, critical, gauge, handler, series, unitTests } from '../monitoring/series.ts';
import { chart, helms, type KubeObject, pick, render } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/minimal-values.yaml')];
const alert = 'FormgateServiceDown';

async function expectCases(set: Record<string, unknown>, cases: Omit<AlertCase, 'alert'>[]): Promise<void> {
  const on = { 'prometheusRule.enabled': true, 'serviceMonitor.enabled': true };
  const objects = await render(helm, { files, set: { ...on, ...set } });
  const { spec } = pick<KubeObject & { spec: RuleFile }>(objects, 'PrometheusRule');
  const { code, output } = await runWithFiles('promtool', ['test', 'rules', 'tests.json'], {
    'rules.yaml': JSON.stringify(rulesOf(alert, spec)),
    'tests.json': unitTests(cases.map((one) => ({ ...one, alert }))),
  });
  expect(output).toMatch(/SUCCESS/);
  expect(code).toBe(0);
}

const up = (labels: Record<string, string>, ...parts: Parameters<typeof gauge>) => ({
  [series('up', labels)]: gauge(...parts),
});
const forms = { ...critical, job: 'forms' };
const handlers = { ...critical, job: 'token-handler' };
const ended: [number | undefined, number][] = [
  [1, 10],
  [undefined, 200],
];

test('fires until the outage ends, with the labels of other alerts', () =>
  expectCases({}, [
    { when: 'the targets ended two minutes ago', series: up(handler, [1, 200]), at: 2, firing: [] },
    ...[20, 130, 200].map((at) => ({
      when: `the targets of one job ended, after ${at} minutes`,
      series: { ...up({}, ...ended), ...up(handler, [1, 210]) },
      ...{ at, firing: [forms] },
    })),
    {
      when: 'all targets ended',
      series: { ...up({}, ...ended), ...up(handler, ...ended) },
      at: 130,
      firing: [forms, handlers],
    },
    { when: 'all is well', series: { ...up({}, [1, 210]), ...up(handler, [1, 210]) }, at: 130, firing: [] },
    {
      when: 'the pods do not respond',
      series: { ...up({}, [0, 210]), ...up(handler, [1, 210]) },
      at: 130,
      firing: [forms],
    },
  ]));

test('has the labels of other alerts if the matchers do not name them', () =>
  expectCases({ 'prometheusRule.matchers': 'cluster="north"' }, [
    {
      when: 'the targets of one job ended',
      series: { ...up({ cluster: 'north' }, ...ended), ...up({ ...handler, cluster: 'north' }, [1, 210]) },
      ...{ at: 130, firing: [{ ...forms, cluster: 'north' }] },
    },
  ]));

test('does not expect a service without pods, or one that the matchers leave out', async () => {
  const well = { series: up({}, [1, 210]), at: 130, firing: [] };
  await expectCases({ 'tokenHandler.replicas': 0 }, [{ when: 'the other service is well', ...well }]);
  const matchers = 'namespace="forms",job="forms"';
  await expectCases({ 'prometheusRule.matchers': matchers }, [
    { when: 'the other service is well', ...well, firing: [] },
  ]);
});
