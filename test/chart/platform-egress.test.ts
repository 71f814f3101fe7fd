// Tests that the NetworkPolicies let the pods reach both the release's platform server and platform services outside
// the release.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chart, helms, type KubeObject, render } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/platform-server-values.yaml')];
const to = [{ ipBlock: { cidr: '192.0.2.0/24' } }];
const named = { 'networkPolicy.egress.access.to': [{ ipBlock: { cidr: '198.51.100.0/24' } }] };

interface Egress {
  to?: unknown[];
  ports: { protocol: string; port: unknown }[];
}

async function egressOf(set: Record<string, unknown>): Promise<[component: string, egress: Egress[]][]> {
  const objects = await render(helm, { files, set: { ...named, 'checks.enabled': true, ...set } });
  const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
  return policies.map((policy) => {
    const { podSelector, egress = [] } = (policy as KubeObject & { spec: { podSelector: object; egress?: Egress[] } })
      .spec;
    const { matchLabels = {} } = podSelector as { matchLabels?: Record<string, string> };
    return [matchLabels['app.kubernetes.io/component'] ?? '', egress];
  });
}

const callers = ['config-check', 'forms', 'reconciler', 'token-handler'];

test('egress.platform is allowed beside the platform server of the release', async () => {
  const all = await egressOf({ 'networkPolicy.egress.platform': { to, ports: [8088] } });
  const rule = { ports: [{ protocol: 'TCP', port: 8088 }], to };
  const reaching = all.filter(([, egress]) => includes(egress, rule));
  expect(reaching.map(([component]) => component).sort()).toEqual(callers);
  for (const [component, egress] of reaching)
    expect(JSON.stringify(egress), component).toContain('"app.kubernetes.io/component":"platform-server"');
});

test('an empty egress.platform allows only the platform server of the release', async () => {
  for (const [component, egress] of await egressOf({ 'networkPolicy.egress.platform.ports': [8088] }))
    expect(JSON.stringify(egress), component).not.toContain('8088');
});

const includes = (egress: Egress[], rule: Egress) => egress.some((one) => JSON.stringify(one) === JSON.stringify(rule));
