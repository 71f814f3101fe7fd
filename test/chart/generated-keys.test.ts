// Tests that docs/operations.md says how to rotate every key that the chart can generate.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chart, helms, type KubeObject, pick, podTemplates, render } from './helm.ts';

const page = readFileSync(join(chart, '../../docs/operations.md'), 'utf8');
const section = page.split('## Keys and secrets: rotation')[1]?.split('\n## ')[0] ?? '';

test('an operator who rotates a generated key finds its entry and the variable that gets it', async () => {
  const objects = await render(helms()[0] ?? '', { files: [join(chart, 'ci/checked-values.yaml')] });
  const { data } = pick<KubeObject & { data: Record<string, string> }>(objects, 'Secret', 'formgate-keys');
  const references = podTemplates(objects).flatMap(({ component, spec }) =>
    (spec.containers[0]?.env ?? []).flatMap(({ name, valueFrom }) =>
      valueFrom?.secretKeyRef.name === 'formgate-keys' ? [{ component, name, key: valueFrom.secretKeyRef.key }] : [],
    ),
  );
  expect(Object.keys(data).length).toBeGreaterThan(3);
  for (const key of Object.keys(data)) {
    const of = references.find((one) => one.key === key);
    const service = of?.component === 'forms' ? 'form service' : of?.component.replace('-', ' ');
    expect(section).toContain(`| \`${key}\` | \`${of?.name}\` of the ${service} |`);
  }
});

test('the page says how to rotate the secret of the intake application', () => {
  expect(section).toMatch(/^\| `APPLY_CLIENT_SECRET`/m);
});

test('the page says to rotate a key without options that roll a failed upgrade back', () => {
  expect(section).toMatch(/Run step 2 without `--atomic` \(Helm 3\), `--rollback-on-failure` \(Helm 4\)/);
});
