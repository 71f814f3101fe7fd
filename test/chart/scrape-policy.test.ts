// Tests which pods the NetworkPolicies allow to scrape metrics.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chart, helms, type KubeObject, render } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/platform-server-values.yaml')];
/** Alerts on series that something other than the chart's ServiceMonitor scrapes. */
const ownScrapes = {
  'serviceMonitor.enabled': false,
  'prometheusRule.enabled': true,
  'prometheusRule.matchers': 'namespace="forms"',
};

interface Policy extends KubeObject {
  spec: { ingress?: { ports: { port: string | number }[]; from: object[] }[] };
}

/** Returns the peers that may scrape, keyed by the name of the policy. */
async function scrapers(set: Record<string, unknown>): Promise<Record<string, object[]>> {
  const objects = await render(helm, { files, set });
  const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy') as Policy[];
  return Object.fromEntries(
    policies.flatMap(({ metadata, spec }) => {
      const rule = spec.ingress?.find(({ ports }) => ports.some(({ port }) => port === 'metrics'));
      return rule ? [[metadata.name, rule.from]] : [];
    }),
  );
}

const services = ['formgate-forms', 'formgate-platform-server', 'formgate-token-handler'];

describe('the metrics port is open to the pods that scrape', () => {
  test.each([
    ['with the ServiceMonitor', { 'serviceMonitor.enabled': true, 'prometheusRule.enabled': false }],
    ['with alerts on series that something else scrapes', ownScrapes],
  ])('%s', async (_name, set) => {
    const labels = { 'app.kubernetes.io/name': 'alloy' };
    const found = await scrapers({ ...set, 'networkPolicy.monitoring.podLabels': labels });
    expect(Object.keys(found).sort()).toEqual(services);
    for (const from of Object.values(found))
      expect(from).toEqual([{ namespaceSelector: {}, podSelector: { matchLabels: labels } }]);
  });
});

test('the metrics port is open to another agent, whatever the name of its label', async () => {
  const labels = { app: 'vmagent' };
  for (const from of Object.values(await scrapers({ ...ownScrapes, 'networkPolicy.monitoring.podLabels': labels })))
    expect(from).toEqual([{ namespaceSelector: {}, podSelector: { matchLabels: labels } }]);
});

test('the metrics port is closed to all pods if the chart creates neither', async () => {
  expect(await scrapers({ 'serviceMonitor.enabled': false, 'prometheusRule.enabled': false })).toEqual({});
});
