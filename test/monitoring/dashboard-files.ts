// Reads the dashboards of the chart as Grafana would: panels, their queries, and the queries of the variables.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const dashboardFolder = join(import.meta.dirname, '../../charts/formgate/dashboards');

export interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { refId: string; expr: string; instant?: boolean; legendFormat?: string }[];
  options?: object;
  fieldConfig?: { defaults: { unit?: string; custom?: object } };
}

export interface DashboardFile {
  uid: string;
  title: string;
  panels: Panel[];
  templating: { list: { name: string; type: string; query: string | { query: string } }[] };
}

export interface DashboardQuery {
  panel: string;
  refId: string;
  expr: string;
  instant: boolean;
}

/** Returns the file names, in order. */
export function dashboardNames(): string[] {
  return readdirSync(dashboardFolder).sort();
}

export function dashboardFiles(): DashboardFile[] {
  return dashboardNames().map((name) => JSON.parse(readFileSync(join(dashboardFolder, name), 'utf8')));
}

export function queriesOf({ panels }: DashboardFile): DashboardQuery[] {
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr, instant = false }) => ({ panel: title, refId, expr, instant })),
  );
}

/** Returns the metric and the label in the `label_values` query of each query variable. */
export function variableQueriesOf({ templating }: DashboardFile): { name: string; metric: string; label: string }[] {
  return templating.list.flatMap(({ name, type, query }) => {
    const text = typeof query === 'string' ? query : query.query;
    const [, metric = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(text) ?? [];
    return type === 'query' ? [{ name, metric, label }] : [];
  });
}

/** Returns the query without the part that returns 0 while there are no series. */
export function withoutFallback(expr: string): string {
  return expr.replace(/ or on\(\) (?:label_replace\()?vector\(0\).*$/s, '');
}
