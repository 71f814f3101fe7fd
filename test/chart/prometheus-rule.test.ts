// Tests that the PrometheusRule contains the rules of files/alerts.yaml with the values of the release. The promtool
// tests in test/monitoring use the rules of this file too.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { missingJobs, type Rule, type RuleFile, rules, ruleText } from '../monitoring/rules.ts';
import { chart, helms, type KubeObject, pick, render, template } from './helm.ts';

interface PrometheusRule extends KubeObject {
  spec: { groups: { name: string; interval: string; rules: Rule[] }[] };
}

const [helm = ''] = helms();
const files = [join(chart, 'ci/minimal-values.yaml')];
const on = { 'prometheusRule.enabled': true, 'serviceMonitor.enabled': true };
const rendered = async (set: Record<string, unknown> = {}) =>
  pick<PrometheusRule>(await render(helm, { files, set: { ...on, ...set } }), 'PrometheusRule');
const serviceMonitor = (matchers?: string) => ({ missingJobs: missingJobs(['forms', 'token-handler'], matchers) });
const rulesOf = ({ spec }: PrometheusRule) => spec.groups.flatMap(({ rules }) => rules);
const namesOf = (rule: PrometheusRule) => new Set(rulesOf(rule).flatMap(({ alert }) => alert ?? []));

test.each(helms())('the rules are those of the tests (%s)', async (program) => {
  const objects = await render(program, { files, set: on });
  expect(pick<PrometheusRule>(objects, 'PrometheusRule').spec).toEqual(parse(ruleText(serviceMonitor())));
});

test('objectives, thresholds, matchers and the address of the runbooks are replaced', async () => {
  const rule = await rendered({
    'prometheusRule.objectives.availability': 99.5,
    'prometheusRule.objectives.formApiSeconds': 0.25,
    'prometheusRule.thresholds.outboxSeconds': 120,
    'prometheusRule.matchers': 'cluster="north",namespace="forms"',
    'prometheusRule.runbookUrl': 'https://wiki.example.org/formgate',
    'prometheusRule.evaluationSeconds': 15,
  });
  const settings = {
    ...{ availability: 99.5, formApiSeconds: 0.25, outboxSeconds: 120, evaluationSeconds: 15 },
    ...serviceMonitor('cluster="north",namespace="forms"'),
    ...{ matchers: 'cluster="north",namespace="forms"', runbookUrl: 'https://wiki.example.org/formgate' },
  };
  const expected: RuleFile = parse(ruleText(settings));
  for (const one of rules(expected)) one.labels = { ...one.labels, cluster: 'north' };
  expect(rule.spec).toEqual(expected);
  expect(JSON.stringify(rule.spec)).not.toContain('${');
});

test('a long threshold from a values file is a whole number of seconds', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-thresholds-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'values.yaml');
  writeFileSync(file, 'prometheusRule: { thresholds: { reconcilerSeconds: 1814400, overdueSeconds: 2592000 } }');
  const rule = pick<PrometheusRule>(await render(helm, { files: [...files, file], set: on }), 'PrometheusRule');
  const settings = { reconcilerSeconds: 1_814_400, overdueSeconds: 2_592_000, ...serviceMonitor() };
  expect(rule.spec).toEqual(parse(ruleText(settings)));
});

test('alerts have further labels, and can be left out', async () => {
  const rule = await rendered({
    'prometheusRule.alertLabels': { team: 'forms' },
    'prometheusRule.disabledAlerts': ['FormgateKeyRingOld'],
    'prometheusRule.labels': { release: 'prometheus' },
  });
  expect(rule.metadata.labels?.release).toBe('prometheus');
  for (const one of rulesOf(rule)) expect(one.labels?.team, one.alert).toBe(one.alert ? 'forms' : undefined);
  expect(namesOf(rule)).not.toContain('FormgateKeyRingOld');
  expect(namesOf(rule)).toContain('FormgateStoreDown');
});

test('without the reconciler, nothing is late', async () => {
  expect(namesOf(await rendered({ 'reconciler.enabled': false }))).not.toContain('FormgateReconcilerLate');
  expect(namesOf(await rendered())).toContain('FormgateReconcilerLate');
});

test.each([
  [{ 'serviceMonitor.enabled': false }, /prometheusRule\.matchers: without serviceMonitor\.enabled/],
  [{ 'prometheusRule.matchers': 'namespace=forms' }, /matchers/],
  [{ 'prometheusRule.objectives.availability': 100 }, /availability/],
  // At 14.4 times the allowed rate, more than all requests would have to fail.
  [{ 'prometheusRule.objectives.availability': 93 }, /availability/],
  [{ 'prometheusRule.objectives.latency': 94.9 }, /latency/],
  [{ 'prometheusRule.objectives.formApiSeconds': 0.3 }, /formApiSeconds/],
  [{ 'prometheusRule.thresholds.outboxAge': 1 }, /outboxAge/],
  // The rules look back 5 minutes, so a series that is written less often would be missing for a part of the time.
  [{ 'prometheusRule.evaluationSeconds': 121 }, /evaluationSeconds/],
  [{ 'serviceMonitor.interval': '3m' }, /serviceMonitor\.interval: 3m is too long/],
  [{ 'prometheusRule.disabledAlerts': ['FormgateStoreDwon'] }, /disabledAlerts: there is no alert FormgateStoreDwon/],
])('%j is rejected', async (set, message) => {
  const { code, stderr } = await template(helm, { files, set: { ...on, ...set } });
  expect(code).not.toBe(0);
  expect(stderr).toMatch(message);
});

test('the ServiceMonitor adds the label release, by which the rules select the series', async () => {
  const objects = await render(helm, { files: [join(chart, 'ci/extended-values.yaml')] });
  const { spec } = pick<KubeObject & { spec: { endpoints: { relabelings: object[] }[] } }>(objects, 'ServiceMonitor');
  expect(spec.endpoints[0]?.relabelings).toEqual([
    { targetLabel: 'release', replacement: 'formgate' },
    { action: 'replace', targetLabel: 'cluster', replacement: 'north' },
  ]);
});
