// Runs every alert through promtool: the alert fires in an incident, and stays silent in the normal case and in near
// misses, which almost meet its condition.
import { expect, test } from 'vitest';
import { backgroundCases } from './background-cases.ts';
import { objectiveCases } from './objective-cases.ts';
import { runWithFiles } from './promtool.ts';
import { alertNames, rulesOf, ruleText } from './rules.ts';
import { type AlertCase, unitTests } from './series.ts';
import { serviceCases } from './service-cases.ts';

const causeCases = [...backgroundCases, ...serviceCases];
const cases = [...objectiveCases, ...causeCases];

const judge = (alert: string, chosen: AlertCase[]) =>
  runWithFiles('promtool', ['test', 'rules', 'tests.json'], {
    'rules.yaml': JSON.stringify(rulesOf(alert)),
    'tests.json': unitTests(chosen),
  });

test('promtool accepts the rules', async () => {
  expect(ruleText()).not.toMatch(/\$\{/);
  expect(await runWithFiles('promtool', ['check', 'rules', 'rules.yaml'], { 'rules.yaml': ruleText() })).toMatchObject({
    code: 0,
  });
});

test.each(alertNames())('%s fires and stays silent as its cases say', async (alert) => {
  const chosen = cases.filter((one) => one.alert === alert);
  expect(chosen.filter(({ firing }) => firing.length > 0)).not.toEqual([]);
  expect(chosen.filter(({ firing }) => firing.length === 0).length).toBeGreaterThanOrEqual(2);
  const { code, output } = await judge(alert, chosen);
  expect(output).toMatch(/SUCCESS/);
  expect(code).toBe(0);
});

test('a case that is wrong about an alert is reported', async () => {
  const alert = 'FormgateStoreDown';
  const wrong = causeCases.filter((one) => one.alert === alert && one.firing.length > 0);
  const { code, output } = await judge(
    alert,
    wrong.map((one) => ({ ...one, firing: [] })),
  );
  expect(code).not.toBe(0);
  expect(output).toMatch(/FAILED/);
});
