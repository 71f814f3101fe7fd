// Tests the notes that Helm prints after an installation. `helm template` leaves them out, so a copy of the chart gets
// a template that renders the notes.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { renamedSettings } from '../../src/service/operations/renamed-settings.ts';
import { chart, helms, run } from './helm.ts';

const copy = mkdtempSync(join(tmpdir(), 'formgate-chart-'));
cpSync(chart, copy, { recursive: true });
writeFileSync(
  join(copy, 'templates/notes.yaml'),
  'kind: Notes\ntext: |\n{{ include (print .Template.BasePath "/NOTES.txt") . | indent 2 }}\n',
);
afterAll(() => rmSync(copy, { recursive: true }));

test.each(Object.entries(renamedSettings))('the notes warn about the renamed setting %s', async (oldName, name) => {
  const render = async (...set: string[]) => {
    const values = join(chart, 'ci/minimal-values.yaml');
    const args = [
      'template',
      'formgate',
      copy,
      '--values',
      values,
      '--kube-version=1.34.0',
      '--show-only',
      'templates/notes.yaml',
      ...set,
    ];
    const { code, stdout, stderr } = await run(helms()[0] ?? '', args);
    expect(code, stderr).toBe(0);
    return stdout;
  };
  expect(await render()).not.toContain('WARNING');
  expect(await render('--set-string', `reconciler.env.${oldName}=PT1M`, '--skip-schema-validation')).toContain(
    `WARNING: reconciler.env.${oldName} was renamed to ${name}. The next version ignores the old name.`,
  );
});
