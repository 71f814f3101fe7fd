// Tests that the first step of a restore (docs/operations.md) stops every pod of the chart that can delete forms. Only
// then are the deletions of the old database exported for the last time.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { chart, helms, type KubeObject, pick, podTemplates, render } from './helm.ts';

const page = readFileSync(join(chart, '../../docs/operations.md'), 'utf8');
const step = page.split('**Restore** the form service')[1]?.split('\n2. ')[0] ?? '';
const commands = step.split('```sh')[1]?.split('```')[0]?.replaceAll('\\\n', '') ?? '';
const lines = commands
  .split('\n')
  .map((line) => line.trim())
  .filter((line) => line !== '');

let objects: KubeObject[];
beforeAll(async () => {
  objects = await render(helms()[0] ?? '', { files: [join(chart, 'ci/checked-values.yaml')] });
});

/** True if a command's label selector (`key=value`, or `key in (a,b)`) selects an object with these labels. */
function isSelected(command: string, labels: Record<string, string> = {}): boolean {
  const selector = /-l '?([^']*[^' ])'?$/.exec(command)?.[1] ?? '';
  const terms = selector.split(/,(?![^(]*\))/).map((term) => /^([\w./-]+)(?:=| in )\(?([\w,-]+)\)?$/.exec(term));
  return terms.every((term) => term?.[2]?.split(',').includes(labels[term[1] ?? ''] ?? ''));
}

test('the commands suspend the reconciler, stop the form service, end running Jobs, and then wait for all pods', () => {
  expect(lines.map((line) => /^kubectl -n formgate (\w+ \S+)/.exec(line)?.[1])).toEqual([
    ...['patch cronjob', 'scale deployment', 'delete job', 'wait --for=delete'],
  ]);
  expect(step.indexOf('export its deletions once more')).toBeGreaterThan(step.lastIndexOf('```'));
  expect(() => pick(objects, 'CronJob', /cronjob (\S+)/.exec(lines[0] ?? '')?.[1])).not.toThrow();
  expect(() => pick(objects, 'Deployment', /deployment (\S+)/.exec(lines[1] ?? '')?.[1])).not.toThrow();
});

test('the Jobs of the reconciler are deleted', () => {
  const cronJob = pick<KubeObject & { spec: { jobTemplate: KubeObject } }>(objects, 'CronJob');
  expect(isSelected(lines[2] ?? '', cronJob.spec.jobTemplate.metadata.labels)).toBe(true);
});

test('the pods of the form service and the reconciler are waited for, and no others, and for longer than they need', () => {
  const selected = podTemplates(objects).filter(({ labels }) => isSelected(lines[3] ?? '', labels));
  expect(selected.map(({ component }) => component).sort()).toEqual(['forms', 'reconciler']);
  const seconds = Number(/--timeout=(\d+)m/.exec(lines[3] ?? '')?.[1]) * 60;
  for (const { spec } of selected) expect(seconds).toBeGreaterThan(2 * (spec.terminationGracePeriodSeconds ?? 0));
});

test('before the first step, the page says to suspend tools that would start the pods again', () => {
  const before = page.split('**Restore** the form service')[0]?.split('**Back up**').at(-1) ?? '';
  expect(before).toMatch(/suspend each tool/);
});
