// Runs the cases of the alerts through promtool with an additional label in `prometheusRule.matchers`. Clusters that
// share a Prometheus need an additional label to distinguish their series.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { backgroundCases } from '../monitoring/background-cases.ts';
import { objectiveCases } from '../monitoring/objective-cases.ts';
import { runWithFiles } from '../monitoring/promtool.ts';
import { alertNames, type Rule, type RuleFile, rules, rulesOf } from '../monitoring/rules.ts';
import { type AlertCase, unitTests } from '../monitoring/series.ts';
import { serviceCases } from '../monitoring/service-cases.ts';
import { chart, helms, type KubeObject, pick, render, template } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/minimal-values.yaml')];
const cases = [...objectiveCases, ...backgroundCases, ...serviceCases];

async function ruleFile(matchers: string): Promise<RuleFile> {
  const set = { 'prometheusRule.enabled': true, 'prometheusRule.matchers': matchers };
  const objects = await render(helm, { files, set });
  return pick<KubeObject & { spec: RuleFile }>(objects, 'PrometheusRule').spec;
}

const north = await ruleFile('namespace="forms",cluster="north"');
const south = await ruleFile('cluster="south",namespace="forms",job=~"forms|token-handler|platform-server"');

/** Adds the label that a cluster's Prometheus adds to every series. */
const seriesIn = (cluster: string, { series }: AlertCase) =>
  Object.fromEntries(
    Object.entries(series).map(([name, values]) => [name.replace(/\}$/, `,cluster="${cluster}"}`), values]),
  );

const inCluster = (cluster: string, one: AlertCase): AlertCase => ({
  ...one,
  series: seriesIn(cluster, one),
  firing: one.firing.map((labels) => ({ ...labels, cluster })),
});

async function expectSuccess(file: RuleFile, chosen: AlertCase[]): Promise<void> {
  const { code, output } = await runWithFiles('promtool', ['test', 'rules', 'tests.json'], {
    'rules.yaml': JSON.stringify(file),
    'tests.json': unitTests(chosen),
  });
  expect(output).toMatch(/SUCCESS/);
  expect(code).toBe(0);
}

// Skip this case, because the matchers of this test do not select by release.
const applies = ({ when }: AlertCase) => when !== 'another release fails';

test.each(alertNames())(
  '%s fires and stays silent as its cases say, for the cluster of the matchers',
  async (alert) => {
    const chosen = cases.filter((one) => one.alert === alert && applies(one)).map((one) => inCluster('north', one));
    expect(chosen.filter(({ firing }) => firing.length > 0)).not.toEqual([]);
    await expectSuccess(rulesOf(alert, north), chosen);
  },
);

test.each(['FormgateFormApiAvailability', 'FormgateQuarantineGrowing'])(
  '%s fires only for the cluster that fails, if two clusters have equal namespaces and releases',
  async (alert) => {
    const [failing, well] = [true, false].map((fires) =>
      cases.find((one) => one.alert === alert && one.firing.length > 0 === fires),
    );
    if (!failing || !well) throw new Error(`${alert} has no two cases`);
    const bothClusters = {
      groups: [north, south].flatMap((file, index) =>
        rulesOf(alert, file).groups.map((group) => ({ ...group, name: `${group.name}-${index}` })),
      ),
    };
    const one = inCluster('south', failing);
    await expectSuccess(bothClusters, [{ ...one, series: { ...one.series, ...seriesIn('north', well) } }]);
  },
);

test('every rule has the labels that matchers compare with =, unless the series have them', () => {
  for (const { alert, record, labels } of rules(south)) expect(labels?.cluster, alert ?? record).toBe('south');
  const others = rules(south).flatMap(({ labels }: Rule) => Object.keys(labels ?? {}));
  expect(new Set(others)).toEqual(new Set(['cluster', 'part', 'severity', 'sli']));
});

test('matchers by which recorded series cannot be selected are rejected', async () => {
  const set = { 'prometheusRule.enabled': true, 'prometheusRule.matchers': 'cluster=~"north|south"' };
  const { code, stderr } = await template(helm, { files, set });
  expect(code).not.toBe(0);
  expect(stderr).toContain('prometheusRule.matchers: name at least one label with =');
});
