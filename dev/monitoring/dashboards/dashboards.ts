// The dashboards of Grafana, generated from the metrics catalogue. `npm run docs` writes them to
// charts/formgate/dashboards. They are classic dashboards (schema version 1), which every current Grafana can load from
// files and ConfigMaps.
import * as grafana from '@grafana/grafana-foundation-sdk/dashboard';
import { background } from './background.ts';
import { formService } from './form-service.ts';
import { overview } from './overview.ts';
import { buildPanel, dataSource, type Explain, type RowText } from './panels.ts';
import { createQueries, type MetricFacts, ofRelease, type Queries } from './queries.ts';
import { tokenHandler } from './token-handler.ts';

/** A metric of the catalogue, with its help text. */
export interface DescribedMetric extends MetricFacts {
  help: string;
}

interface DashboardText {
  /** The file name without `.json`. The dashboard's uid is `formgate-` and this name. */
  name: string;
  title: string;
  description: string;
  /**
   * A metric that only the pods of this dashboard export, from their start. The dashboard's menu of services lists
   * the values of the metric's label `job`.
   */
  exportedBy: string;
  rows(queries: Queries): RowText[];
}

const dashboards: readonly DashboardText[] = [
  {
    name: 'overview',
    title: 'Formgate: overview',
    description: 'Are the objectives kept, which alerts fire, and which service or dependency is the cause?',
    exportedBy: 'formgate_build_info',
    rows: overview,
  },
  {
    name: 'form-service',
    title: 'Formgate: form service',
    description: 'Requests, forms, codes, caches, database connections and child processes of the form service.',
    exportedBy: 'formgate_schema_suspensions_total',
    rows: formService,
  },
  {
    name: 'token-handler',
    title: 'Formgate: token handler',
    description: 'Sign-ins, sessions, token refreshes and proxied requests.',
    exportedBy: 'formgate_token_refreshes_in_progress',
    rows: tokenHandler,
  },
  {
    name: 'background',
    title: 'Formgate: reconciler and outbox',
    description: 'What happens without a request: deliveries, runs of the reconciler, and the quarantine.',
    exportedBy: 'formgate_build_info',
    rows: background,
  },
];

/** Returns the dashboards, keyed by file name without `.json`. */
export function buildDashboards(metrics: readonly DescribedMetric[]): Map<string, grafana.Dashboard> {
  const queries = createQueries(metrics);
  const explain = createExplain(metrics);
  return new Map(dashboards.map((text) => [text.name, buildDashboard(text, queries, explain)]));
}

/** Returns the content of a dashboard's file. */
export function dashboardFile(dashboard: grafana.Dashboard): string {
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

/**
 * Returns the subset of `metrics` that the PromQL expressions use. An expression names a histogram with the suffix
 * `_bucket`, `_sum` or `_count`.
 */
export function metricsIn(expressions: readonly string[], metrics: readonly DescribedMetric[]): DescribedMetric[] {
  const names = new Set(expressions.flatMap((expr) => expr.match(/[a-zA-Z_:][\w:]*/g) ?? []));
  return metrics.filter(({ name }) =>
    ['', '_bucket', '_sum', '_count'].some((suffix) => names.has(`${name}${suffix}`)),
  );
}

function createExplain(metrics: readonly DescribedMetric[]): Explain {
  return (expressions) =>
    metricsIn(expressions, metrics)
      .map(({ name, help }) => `\`${name}\`: ${help}`)
      .join('\n\n');
}

function buildDashboard(text: DashboardText, queries: Queries, explain: Explain): grafana.Dashboard {
  const builder = new grafana.DashboardBuilder(text.title)
    .uid(`formgate-${text.name}`)
    .description(text.description)
    .tags(['formgate'])
    .time({ from: 'now-6h', to: 'now' })
    .refresh('1m')
    .timezone('browser')
    .tooltip(grafana.DashboardCursorSync.Crosshair)
    .readonly()
    .link(
      new grafana.DashboardLinkBuilder('Formgate')
        .type(grafana.DashboardLinkType.Dashboards)
        .tags(['formgate'])
        .includeVars(true)
        .keepTime(true),
    )
    .variables(variables(text))
    .annotations([firingAlerts()]);
  let id = 0;
  for (const row of text.rows(queries)) {
    id += 1;
    builder.withRow(new grafana.RowBuilder(row.title).id(id));
    for (const panel of row.panels) {
      id += 1;
      builder.withPanel(buildPanel(panel, id, explain));
    }
  }
  return builder.build();
}

/** Shows firing alerts as marks in every panel. */
function firingAlerts(): grafana.AnnotationQueryBuilder {
  return new grafana.AnnotationQueryBuilder()
    .name('Firing alerts')
    .datasource(dataSource)
    .enable(true)
    .iconColor('red')
    .expr(`ALERTS{alertname=~"Formgate.+", alertstate="firing", ${ofRelease}}`)
    .titleFormat('{{alertname}}')
    .textFormat('{{severity}} {{job}}');
}

/**
 * Returns the dashboard's variables. Grafana resolves them in order, so the query of a variable may use the variables
 * before it.
 */
function variables({ exportedBy }: DashboardText) {
  const query = (name: string, label: string, expr: string) =>
    new grafana.QueryVariableBuilder(name)
      .label(label)
      .datasource(dataSource)
      .query({ query: expr, refId: 'A' })
      .refresh(grafana.VariableRefresh.OnTimeRangeChanged)
      .sort(grafana.VariableSort.AlphabeticalAsc);
  const many = (name: string, label: string, expr: string) =>
    query(name, label, expr)
      .multi(true)
      .includeAll(true)
      .current({ selected: true, text: ['All'], value: ['$__all'] });
  return [
    new grafana.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
    query('namespace', 'Namespace', 'label_values(formgate_build_info, namespace)'),
    query('release', 'Release', 'label_values(formgate_build_info{namespace="$namespace"}, release)'),
    // The option "All" selects only the services of this dashboard.
    many('job', 'Service', `label_values(${exportedBy}{${ofRelease}}, job)`),
    // The option "All" is the pattern `.*`, which also selects pods that have ended. Such pods have data in the time
    // range, but the menu does not list them.
    many('pod', 'Pod', `label_values(${exportedBy}{${ofRelease}, job=~"$job"}, pod)`).allValue('.*'),
  ];
}
