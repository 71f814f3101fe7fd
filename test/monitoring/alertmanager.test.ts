// Tests that amtool accepts the example configuration of Alertmanager, and routes each severity to its receiver.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runWithFiles } from './promtool.ts';
import { alertNames, rules } from './rules.ts';

const example = join(import.meta.dirname, '../../charts/formgate/examples/alertmanager.yaml');
const files = { 'alertmanager.yaml': readFileSync(example, 'utf8') };

test('amtool accepts the example', async () => {
  const { code, output } = await runWithFiles('amtool', ['check-config', 'alertmanager.yaml'], files);
  expect(output).toContain('SUCCESS');
  expect(code).toBe(0);
});

test.each([
  ['critical', 'FormgateStoreDown', 'pager'],
  ['warning', 'FormgateOutboxStuck', 'warnings'],
])('%s alerts go to their receiver', async (severity, alert, receiver) => {
  const labels = [`alertname=${alert}`, `severity=${severity}`, 'namespace=forms', 'release=formgate'];
  const routed = ['config', 'routes', 'test', '--config.file=alertmanager.yaml', `--verify.receivers=${receiver}`];
  expect(await runWithFiles('amtool', [...routed, ...labels], files)).toMatchObject({ code: 0 });
});

test('alerts that inhibit others, and those that they inhibit, exist', () => {
  const patterns = [...(files['alertmanager.yaml'].matchAll(/Formgate\(([\w|]+)\)/g) ?? [])];
  const named = patterns.flatMap(([, names = '']) => names.split('|').map((name) => `Formgate${name}`));
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !alertNames().includes(name))).toEqual([]);
});

test('every alert has a severity for which there is a route', () => {
  const severities = rules().flatMap(({ alert, labels }) => (alert ? [labels?.severity] : []));
  expect(new Set(severities)).toEqual(new Set(['critical', 'warning']));
});
