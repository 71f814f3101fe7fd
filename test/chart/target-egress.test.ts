// Tests that `networkPolicy.egress.targets.to` restricts the destinations of the token handler. The egress rules of a
// pod add up, so another rule that allows every address at the same ports would cancel the restriction.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chart, helms, type KubeObject, pick, type Rendering, render, template } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/minimal-values.yaml')];
const peers = (cidr: string) => [{ ipBlock: { cidr } }];
const upstreams = peers('192.0.2.0/24');
const platform = peers('198.51.100.0/24');
const access = peers('203.0.113.7/32');
const targetsOnly = { 'networkPolicy.egress.targets.to': upstreams };
const listed = {
  ...targetsOnly,
  'networkPolicy.egress.access.to': access,
  'networkPolicy.egress.platform.to': platform,
};
const collector = { 'tracing.endpoint': 'http://collector:4318', 'networkPolicy.egress.targets.ports': [443, 4318] };

const problems = async (options: Rendering) => {
  const { stderr } = await template(helm, options);
  return [...stderr.matchAll(/networkPolicy\.egress\.(\w+)\.to: ([^\n]*)/g)].map(([, name]) => name);
};

test('if every rule at the ports of targets has its peers, the token handler reaches no other address there', async () => {
  const policy = pick<KubeObject & { spec: { egress: { ports: { port: unknown }[]; to?: object[] }[] } }>(
    await render(helm, { files, set: listed }),
    'NetworkPolicy',
    'formgate-token-handler',
  );
  const atPort = policy.spec.egress.filter(({ ports }) => ports.some(({ port }) => port === 443));
  expect(atPort.flatMap<unknown>(({ to }) => to ?? ['every address'])).toEqual([...access, ...platform, ...upstreams]);
});

test.each<[string, Record<string, unknown>, string[]]>([
  ['the identity provider and the platform', targetsOnly, ['access', 'platform']],
  ['the platform', { ...listed, 'networkPolicy.egress.platform.to': [] }, ['platform']],
  ['the collector', { ...listed, ...collector }, ['collector']],
  ['a Postgres outside the release', { ...listed, 'networkPolicy.egress.targets.ports': [443, 5432] }, ['postgres']],
  ['a Redis outside the release', { ...listed, 'networkPolicy.egress.targets.ports': [26379] }, ['redis']],
])('peers of targets are refused while every address is allowed for %s at the same port', async (_of, set, names) => {
  expect(await problems({ files, set })).toEqual(names);
});

test.each<[string, string, Record<string, unknown>]>([
  ['targets have no peers', 'minimal', { 'networkPolicy.egress.access.to': access }],
  ['the open rules have other ports', 'minimal', { ...targetsOnly, 'networkPolicy.egress.targets.ports': [9000] }],
  ['there is no collector', 'minimal', { ...listed, ...collector, 'tracing.endpoint': '' }],
  ['there are no NetworkPolicies', 'minimal', { ...targetsOnly, 'networkPolicy.enabled': false }],
  [
    'the platform server and the stores belong to the release',
    'checked',
    {
      ...targetsOnly,
      'networkPolicy.egress.access.to': access,
      'networkPolicy.egress.targets.ports': [443, 5432, 6379],
    },
  ],
])('the values are accepted if %s', async (_what, name, set) => {
  expect((await template(helm, { files: [join(chart, `ci/${name}-values.yaml`)], set })).stderr).toBe('');
});

test('the refusal says why the peers have no effect, and what to list', async () => {
  expect((await template(helm, { files, set: targetsOnly })).stderr).toContain(
    'networkPolicy.egress.access.to: list the peers, because egress.targets.to restricts nothing while this rule allows ' +
      'every address at the same ports (80, 443, 8080, 8443)',
  );
});
