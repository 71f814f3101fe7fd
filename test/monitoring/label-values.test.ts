// Tests that the code can produce every label value that a rule, a dashboard or a runbook selects. Without this test, a
// renamed value could silence an alert unnoticed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { labelValues } from '../../dev/monitoring/label-values.ts';
import { listFiles } from '../rules/source-files.ts';
import { dashboardFiles, queriesOf } from './dashboard-files.ts';
import { rules } from './rules.ts';

const root = join(import.meta.dirname, '../..');

/** The path patterns of docs/routes.md, which is generated from the route tables, in the notation of the metrics. */
const routes = [...readFileSync(join(root, 'docs/routes.md'), 'utf8').matchAll(/`(\/[^`\s]*)`/g)].map(
  ([, path = '']) => path,
);

interface Selected {
  metric: string;
  label: string;
  operator: string;
  value: string;
}

/** Returns the metric of a series: its name without the suffix of a histogram's series. */
const metricOf = (series: string) => series.replace(/_(?:bucket|sum|count)$/, '');

/**
 * Returns the label matchers of the queries in a text. Runbooks that search with `grep` have `.*` instead of an opening
 * brace.
 */
function matchersOf(text: string): Selected[] {
  return [...text.matchAll(/([a-zA-Z_:][\w:]*)(?:\{|\.\*)((?:[^{}"]|"[^"]*")*)/g)].flatMap(
    ([, series = '', inside = '']) =>
      [...inside.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(([, label = '', operator = '', value = '']) => ({
        ...{ metric: metricOf(series), label, operator, value },
      })),
  );
}

/** `a|b(c|d)` becomes `a`, `bc` and `bd`. */
function alternativesOf(pattern: string): string[] {
  const group = /^(.*?)\(([^()]*)\)(.*)$/.exec(pattern);
  if (!group) return pattern.split('|');
  const [, before = '', inside = '', after = ''] = group;
  return inside.split('|').flatMap((one) => alternativesOf(`${before}${one}${after}`));
}

function known({ metric, label }: Selected): readonly string[] | undefined {
  return label === 'route' ? routes : labelValues[metric]?.[label];
}

/** Returns the selected values, or alternatives of the selected pattern, that the code cannot produce. */
function unknownIn(selected: Selected): string[] {
  const values = known(selected) ?? [];
  const { operator, value } = selected;
  const wanted = operator.endsWith('~') ? alternativesOf(value) : [value];
  const selects = (one: string) =>
    values.some((other) => (operator.endsWith('~') ? new RegExp(`^(?:${one})$`).test(other) : one === other));
  return wanted.filter((one) => !selects(one));
}

// Labels that are not checked: the labels of Prometheus and of our recording rules, and `le`, which is checked by the
// schema of the chart's values.
const ofScrapes = new Set(['namespace', 'release', 'job', 'pod', 'le', 'sli', 'alertname', 'alertstate']);

const sources: [string, string[]][] = [
  ['rules', rules().map(({ expr }) => expr)],
  ['dashboards', dashboardFiles().flatMap((dashboard) => queriesOf(dashboard).map(({ expr }) => expr))],
  ['runbooks', listFiles(root, ['docs/runbooks'], '.md').map(({ text }) => text)],
];

describe.each(sources)('the label matchers of the %s', (_name, texts) => {
  const selected = texts.flatMap(matchersOf).filter(({ label }) => !ofScrapes.has(label));

  it('are for labels whose values are known', () => {
    expect(selected.length).toBeGreaterThan(4);
    expect(selected.filter((one) => known(one) === undefined)).toEqual([]);
  });

  it('have values that the code sets', () => {
    expect(selected.flatMap((one) => unknownIn(one).map((value) => `${one.metric} ${one.label}: ${value}`))).toEqual(
      [],
    );
  });
});

it('a value that the code does not set is found, also in a pattern', () => {
  const found = matchersOf(
    'x{a="b"} + formgate_proxied_requests_total{outcome=~"server-error|gone",outcome!="refused"}',
  );
  expect(found.slice(1).flatMap(unknownIn)).toEqual(['gone']);
  expect(alternativesOf('.*/clients/(auth|callback)')).toEqual(['.*/clients/auth', '.*/clients/callback']);
});
