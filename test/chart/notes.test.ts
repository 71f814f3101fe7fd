// Tests the notes that Helm prints after an installation. `helm template` leaves them out, so a copy of the chart gets
// a template that renders the notes.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chart, helms, run } from './helm.ts';

const copy = mkdtempSync(join(tmpdir(), 'formgate-chart-'));
cpSync(chart, copy, { recursive: true });
writeFileSync(
  join(copy, 'templates/notes.yaml'),
  'kind: Notes\ntext: |\n{{ include (print .Template.BasePath "/NOTES.txt") . | indent 2 }}\n',
);
afterAll(() => rmSync(copy, { recursive: true }));

async function render(...set: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(helms()[0] ?? '', [
    ...['template', 'formgate', copy, '--namespace=forms', '--values', join(chart, 'ci/minimal-values.yaml')],
    ...['--kube-version=1.34.0', '--show-only', 'templates/notes.yaml', ...set],
  ]);
  expect(code, stderr).toBe(0);
  return stdout;
}

test('the notes warn about the old name of a renamed setting', async () => {
  writeFileSync(join(copy, 'files/renamed-settings.json'), '{ "OLD_LEASE": "LEASE_DURATION" }');
  expect(await render()).not.toContain('WARNING');
  expect(await render('--set-string', 'reconciler.env.OLD_LEASE=PT1M', '--skip-schema-validation')).toContain(
    'WARNING: reconciler.env.OLD_LEASE was renamed to LEASE_DURATION. The next version ignores the old name.',
  );
});

describe('the notes warn about a rewrite that decodes paths', () => {
  const nginx = ['--set', 'ingress.enabled=true,ingress.preset=nginx'];
  const gateway = [
    ...['--set', 'httpRoute.enabled=true', '--set-json', 'httpRoute.parentRefs=[{"name":"public"}]'],
    ...['--set', 'networkPolicy.ingressController.podLabels.app=envoy'],
  ];

  test.each([
    ['ingress.rewrite', nginx],
    ['httpRoute.rewrite', gateway],
  ])('%s', async (name, set) => {
    expect(await render(...set)).not.toContain('WARNING');
    expect(await render(...set, '--set', `${name}=true`)).toContain(`WARNING: ${name} is set.`);
  });

  test('but not about that of Traefik, which decodes nothing', async () => {
    const set = 'ingress.enabled=true,ingress.preset=traefik,ingress.rewrite=true';
    expect(await render('--set', set)).not.toContain('WARNING');
  });
});

describe('the notes warn that FormgateReconcilerLate fires between runs of the reconciler', () => {
  const alerts = ['--set', 'serviceMonitor.enabled=true,prometheusRule.enabled=true'];
  const schedule = (text: string) => ['--set-string', `reconciler.schedule=${text}`];
  const threshold = (seconds: number) => ['--set', `prometheusRule.thresholds.reconcilerSeconds=${seconds}`];
  const warning = 'WARNING: the reconciler runs at most once';

  test.each([
    ['@hourly', 'an hour', 7_199],
    ['0 * * * *', 'an hour', 7_199],
    ['@daily', 'a day', 86_400],
    ['30 3 * * *', 'a day', 86_400],
  ])('with the schedule %s', async (text, interval, seconds) => {
    expect(await render(...alerts, ...schedule(text), ...threshold(seconds))).toContain(`${warning} ${interval}, so`);
  });

  test.each<[string, string[]]>([
    ['it runs more often', [...alerts, ...schedule('0\\,30 * * * *')]],
    ['the threshold allows it', [...alerts, ...schedule('@hourly'), ...threshold(7_200)]],
    ['the threshold allows a run each day', [...alerts, ...schedule('@daily'), ...threshold(90_000)]],
    [
      'there is no such alert',
      [...alerts, ...schedule('@hourly'), '--set', 'prometheusRule.disabledAlerts={FormgateReconcilerLate}'],
    ],
    ['there are no alerts', schedule('@hourly')],
  ])('but not if %s', async (_what, set) => {
    expect(await render(...set)).not.toContain(warning);
  });
});

test('the notes warn if the mail before a deletion has no links', async () => {
  const apply = ['--set', 'forms.apply.enabled=true,forms.apply.secret.value=secret'];
  const warning = 'WARNING: forms.publicUrl is empty';
  expect(await render(...apply)).toContain(warning);
  expect(await render(...apply, '--set', 'forms.publicUrl=https://forms.example.org')).not.toContain(warning);
  expect(await render()).not.toContain(warning);
});

describe('if the NetworkPolicy admits no identity provider', () => {
  const hint = 'Back-channel logout fails until networkPolicy.from lists the pods of the identity provider';
  const publicUrl = (url: string) => ['--set-string', `tokenHandler.publicUrl=${url}`];
  const inside = 'http://formgate-token-handler.forms.svc:8080';

  test.each([
    inside,
    'http://formgate-token-handler.forms.svc.cluster.local:8080',
    'http://formgate-token-handler.forms:8080/',
    'http://formgate-token-handler:8080',
  ])('the notes say that it cannot reach %s', async (url) => {
    expect(await render(...publicUrl(url))).toContain(hint);
  });

  test.each<[string, string[]]>([
    ['the address is that of the ingress', publicUrl('https://forms.svc.example.org')],
    ['there is no address', []],
    [
      'a peer is listed',
      [...publicUrl(inside), '--set-json', 'networkPolicy.from=[{"podSelector":{"matchLabels":{"app":"keycloak"}}}]'],
    ],
    ['there are no NetworkPolicies', [...publicUrl(inside), '--set', 'networkPolicy.enabled=false']],
  ])('the notes say nothing about it if %s', async (_what, set) => {
    expect(await render(...set)).not.toContain(hint);
  });
});
