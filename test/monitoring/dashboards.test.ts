// Tests that the chart's dashboards are up to date, and that every metric is on a dashboard or in the list of omitted
// metrics. Each panel must have a question, a unit that fits its query, and runbooks that exist.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createCatalogue, createMetricsOf, monitoredProcesses } from '../../dev/monitoring/catalogue.ts';
import { buildDashboards, dashboardFile, metricsIn } from '../../dev/monitoring/dashboards/dashboards.ts';
import { leftOut } from '../../dev/monitoring/dashboards/left-out.ts';
import { runbookFolder } from '../../dev/monitoring/dashboards/panels.ts';
import { createQueries } from '../../dev/monitoring/dashboards/queries.ts';
import { dashboardFiles, dashboardFolder, dashboardNames, type Panel, queriesOf } from './dashboard-files.ts';
import { alertNames, ruleSettings, rules, runbookOf } from './rules.ts';

const root = join(import.meta.dirname, '../..');
const catalogue = createCatalogue();
const dashboards = dashboardFiles();
const expressions = dashboards.flatMap((dashboard) => queriesOf(dashboard).map(({ expr }) => expr));
const panelsOf = (panels: Panel[]) => panels.filter(({ type }) => type !== 'row');

it('charts/formgate/dashboards is up to date: npm run docs writes it', () => {
  const built = buildDashboards(catalogue);
  expect([...built.keys()].map((name) => `${name}.json`).sort()).toEqual(dashboardNames());
  for (const [name, dashboard] of built)
    expect(readFileSync(join(dashboardFolder, `${name}.json`), 'utf8'), name).toBe(dashboardFile(dashboard));
});

it('the menu of services is complete as soon as a process has started', async () => {
  const metrics = monitoredProcesses.map((process) => createMetricsOf(process).registry.metrics());
  const text = (await Promise.all(metrics)).join('\n');
  for (const { title, templating } of dashboards) {
    const query = JSON.stringify(templating.list.find(({ name }) => name === 'job')?.query);
    const [, metric = 'none'] = /label_values\((\w+)\{/.exec(query) ?? [];
    expect(text, title).toMatch(new RegExp(`^${metric}[{ ]`, 'm'));
  }
});

describe('every metric of the catalogue', () => {
  const shown = new Set(metricsIn(expressions, catalogue).map(({ name }) => name));
  const names = [...new Set(catalogue.map(({ name }) => name))];

  it('is on a dashboard, or is listed as left out, but not both', () => {
    const isLeftOut = (name: string) => leftOut.some(([pattern]) => pattern.test(name));
    expect(names.filter((name) => !shown.has(name) && !isLeftOut(name))).toEqual([]);
    expect(names.filter((name) => shown.has(name) && isLeftOut(name))).toEqual([]);
  });

  it('that is listed as left out exists', () => {
    for (const [pattern] of leftOut)
      expect(
        names.filter((name) => pattern.test(name)),
        `${pattern}`,
      ).not.toEqual([]);
  });
});

it('every series that a query reads is of a metric, or recorded by a rule', () => {
  const recorded = rules().flatMap(({ record }) => record ?? []);
  const known = new Set([...recorded, 'ALERTS']);
  for (const { name, type } of catalogue)
    for (const suffix of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) known.add(`${name}${suffix}`);
  for (const expr of expressions) {
    const series = [...expr.matchAll(/([a-zA-Z_:][\w:]*)\{/g)].map(([, name]) => name);
    expect(series.length, expr).toBeGreaterThan(0);
    expect(
      series.filter((name) => !known.has(name ?? '')),
      expr,
    ).toEqual([]);
  }
});

describe.each(dashboards.map((dashboard) => [dashboard.title, dashboard.panels]))('%s', (_title, all) => {
  const panels = panelsOf(all);

  it('has panels with different titles and ids, in 24 columns that do not overlap', () => {
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    const cells = all.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos, title } of all) expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
  });

  it('explains each panel by a question and the meaning of its metrics', () => {
    for (const { title, description = '', targets = [] } of panels) {
      expect(description.split('\n')[0], title).toMatch(/\?/);
      const used = metricsIn(
        targets.map(({ expr }) => expr),
        catalogue,
      );
      for (const { name, help } of used) expect(description, title).toContain(`\`${name}\`: ${help}`);
    }
  });

  it('links to runbooks of alerts', () => {
    const runbooks = alertNames().map(runbookOf);
    for (const { title, description = '' } of panels)
      for (const [, name = ''] of description.matchAll(/Runbook: \[([^\]]+)\]/g)) {
        expect(runbooks, title).toContain(name);
        expect(description).toContain(`(${runbookFolder}/${name}.md)`);
      }
  });

  it('shows each query in a unit that fits it, and as an instant or a range query as the panel needs', () => {
    for (const { title, type, targets = [], fieldConfig } of panels) {
      for (const { expr, instant = false } of targets) {
        expect(fieldConfig?.defaults.unit, `${title}: ${expr}`).toMatch(unitsOf(expr));
        expect(instant, title).toBe(type === 'stat' || type === 'table');
      }
    }
  });
});

/** Derives the units from the query alone, independently of the code that generates the dashboards. */
function unitsOf(expr: string): RegExp {
  const [, metric = ''] = /([a-zA-Z_:][\w:]*)\{/.exec(expr) ?? [];
  if (/^\(*60 \* sum.*rate\(/.test(expr)) return /^cpm$/;
  if (expr.includes('histogram_quantile(')) return metric.endsWith('_seconds_bucket') ? /^s$/ : /^never$/;
  if (/sli_failures.* \/ |\} ?\)?\[[^\]]*\]\)\) or 0 \* /.test(expr)) return /^percentunit$/;
  if (metric.endsWith('_seconds_sum')) return /^percentunit$/;
  if (metric === 'process_cpu_seconds_total') return /^short$/;
  if (/\brate\(/.test(expr)) return /^(reqps|cps)$/;
  if (/time\(\)/.test(expr)) return metric.includes('time') ? /^s$/ : /^never$/;
  if (metric.endsWith('_seconds')) return /^s$/;
  return metric.endsWith('_bytes') ? /^bytes$/ : /^short$/;
}

describe('a query is rejected', () => {
  const queries = createQueries(catalogue);
  it.each([
    ['for a metric that does not exist', () => queries.perSecond('formgate_typo_total'), /is unknown/],
    ['for the rate of a gauge', () => queries.perSecond('formgate_forms'), /is a gauge, not a counter/],
    ['for the value of a counter', () => queries.max('formgate_codes_total'), /is a counter, not a gauge/],
    ['for a quantile of a gauge', () => queries.quantile(0.5, 'formgate_forms'), /is a gauge, not a histogram/],
    [
      'for a label that the metric lacks',
      () => queries.max('formgate_forms', { by: ['tenant'] }),
      /has no label tenant/,
    ],
    [
      'for a matcher of such a label',
      () => queries.perSecond('formgate_codes_total', { where: 'kind="x"' }),
      /has no label kind/,
    ],
  ])('%s', (_why, build, message) => {
    expect(build).toThrow(message);
  });
});

it('the chart replaces the address of the runbooks', () => {
  expect(runbookFolder).toBe(ruleSettings.runbookUrl);
  const template = readFileSync(join(root, 'charts/formgate/templates/dashboards.yaml'), 'utf8');
  expect(template).toContain(`"${runbookFolder}"`);
});
