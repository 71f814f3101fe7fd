// The form service writes paths into mails and pages. Tests that the Ingress and the HTTPRoute send all of these paths
// to the form service.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { base } from '../../src/forms/apply/schema.ts';
import { createNoticeLinks, linkPurposes } from '../../src/forms/notices/links.ts';
import { pageAddresses } from '../../src/forms/pages/page.ts';
import { chart, helms, type KubeObject, pick, render } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/minimal-values.yaml')];
const publicUrl = 'https://forms.example.org';
const apply = {
  'forms.apply.enabled': true,
  'forms.apply.secret.existingSecret.name': 'apply',
  'forms.publicUrl': publicUrl,
};
const admitted = { 'networkPolicy.ingressController.podLabels': { 'app.kubernetes.io/name': 'envoy' } };

/**
 * The ways in which browsers reach the release: a name, the values, and the path prefixes that lead to the form
 * service.
 */
const entrances: [string, Record<string, unknown>, (objects: KubeObject[]) => string[]][] = [
  [
    'Ingress',
    { 'ingress.enabled': true, 'ingress.hosts': ['forms.example.org'] },
    (objects) => {
      type Spec = { spec: { rules: { http: { paths: { path: string }[] } }[] } };
      const { spec } = pick<Spec>(objects, 'Ingress', 'formgate-forms');
      return spec.rules.flatMap(({ http }) => http.paths.map(({ path }) => path));
    },
  ],
  [
    'HTTPRoute',
    { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }] },
    (objects) => {
      type Rule = { matches: { path: { value: string } }[]; backendRefs: { name: string }[] };
      const { spec } = pick<{ spec: { rules: Rule[] } }>(objects, 'HTTPRoute');
      const rules = spec.rules.filter(({ backendRefs }) => backendRefs[0]?.name === 'formgate-forms');
      return rules.flatMap(({ matches }) => matches.map(({ path }) => path.value));
    },
  ],
];

const links = createNoticeLinks({ keys: { hmacs: () => ['signature'] }, publicUrl });
const mailed = linkPurposes.map(
  (purpose) =>
    new URL(links.urlOf(purpose, '0-0-0-0-0', { tenantId: 'a', language: 'en', expires: new Date(0) })).pathname,
);

describe.each(entrances)('an %s', (_kind, entrance, prefixesOf) => {
  const prefixes = async (set: Record<string, unknown>) =>
    prefixesOf(await render(helm, { files, set: { ...admitted, ...entrance, ...set } }));
  const unrouted = (paths: readonly string[], routed: string[]) =>
    paths.filter((path) => !routed.some((prefix) => `${path}/`.startsWith(`${prefix}/`)));

  test('routes the links in mails and the intake application, without the applicant’s pages', async () => {
    expect(unrouted([...mailed, base], await prefixes(apply))).toEqual([]);
  });

  test('routes the pages', async () => {
    const set = { ...apply, 'forms.pages.apply.enabled': true, 'forms.pages.console.enabled': true };
    const console = { 'tokenHandler.consoleUrl': publicUrl };
    const routed = await prefixes({ ...set, ...console });
    expect(unrouted([...mailed, base, ...pageAddresses.apply, ...pageAddresses.console], routed)).toEqual([]);
    expect(routed).toEqual([...new Set(routed)]);
  });

  test('routes neither without them', async () => {
    expect(await prefixes({})).toEqual(['/form/v1']);
  });
});

test('the applicant’s pages are refused without the intake application, which they call', async () => {
  await expect(render(helm, { files, set: { 'forms.pages.apply.enabled': true } })).rejects.toThrow(
    'forms.apply.enabled: the pages of forms.pages.apply call the intake application',
  );
});

describe('the timeouts of an HTTPRoute', () => {
  const route = { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }], ...admitted };
  const timeouts = async (set: Record<string, unknown>) => {
    const objects = await render(helm, { files, set: { ...route, ...set } });
    const { spec } = pick<{ spec: { rules: { timeouts?: unknown }[] } }>(objects, 'HTTPRoute');
    return spec.rules.map((rule) => rule.timeouts);
  };

  test('are those of the Gateway by default', async () => {
    expect(await timeouts({})).toEqual([undefined, undefined, undefined]);
  });

  test('that are set apply to each rule', async () => {
    const set = { request: '0s', backendRequest: '5m30s' };
    expect(await timeouts({ 'httpRoute.timeouts': set })).toEqual([set, set, set]);
  });

  test('that the Gateway API does not accept are refused', async () => {
    await expect(timeouts({ 'httpRoute.timeouts': { request: '1.5s' } })).rejects.toThrow('timeouts');
    await expect(timeouts({ 'httpRoute.timeouts': { idle: '5m' } })).rejects.toThrow('timeouts');
  });
});
