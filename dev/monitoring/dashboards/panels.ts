// Turns a `PanelText` into a panel of Grafana. The panel has the unit of its first query. Its description contains the
// question that the panel answers, the meaning of its metrics, and the runbooks of related alerts.
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import * as common from '@grafana/grafana-foundation-sdk/common';
import * as grafana from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as stateTimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeSeries from '@grafana/grafana-foundation-sdk/timeseries';
import type { Query } from './queries.ts';

/**
 * How a panel shows its values:
 * - `lines`: over time
 * - `areas`: over time, as parts of a sum
 * - `number`: the last value
 * - `states`: the times at which a value was 1 (good) or 0 (bad)
 * - `table`: the last value of each series, with its labels
 */
type Show = 'lines' | 'areas' | 'number' | 'states' | 'table';

export interface PanelText {
  title: string;
  /** The question that the panel answers. */
  question: string;
  queries: readonly Query[];
  /** How the panel shows its values; by default `lines`. */
  show?: Show;
  /** Width in 24ths of a row. Default: 8, or 4 for a number. */
  width?: number;
  /**
   * The panel is yellow from the value `yellow`, and red from the value `red`. If `red` is less than `yellow`, low
   * values are bad: the panel is red below `red`, and yellow below `yellow`.
   */
  limits?: { yellow?: number; red: number };
  /** True for a number of seconds since a timestamp that is 0 if there was no such moment. It then shows `never`. */
  mayBeNever?: boolean;
  /** True if values below 0 mean something. The axis of other panels begins at 0. */
  mayBeNegative?: boolean;
  /** Runbooks that the panel's text links to: file names without `.md`. */
  runbooks?: readonly string[];
}

export interface RowText {
  title: string;
  panels: readonly PanelText[];
}

/** Returns a Markdown text that explains the metrics in the PromQL expressions. */
export type Explain = (expressions: readonly string[]) => string;

/** The data source that the viewer of the dashboard has chosen. */
export const dataSource: common.DataSourceRef = { type: 'prometheus', uid: '$datasource' };
/** Address of the folder of runbooks. The chart replaces it with `prometheusRule.runbookUrl`. */
export const runbookFolder = 'https://github.com/formgate/formgate/blob/main/docs/runbooks';

export function buildPanel(text: PanelText, id: number, explain: Explain): Builder<grafana.Panel> {
  const { show = 'lines', queries, runbooks = [] } = text;
  const unit = queries[0]?.unit ?? 'short';
  if (queries.some((query) => query.unit !== unit)) throw new Error(`The queries of "${text.title}" differ in unit.`);
  const panel = kinds[show](text)
    .id(id)
    .title(text.title)
    .description([text.question, explain(queries.map(({ expr }) => expr)), ...runbooks.map(linkOf)].join('\n\n'))
    .datasource(dataSource)
    .unit(unit)
    .span(text.width ?? (show === 'number' ? 4 : 8))
    // Narrow number panels form rows of half the height. Wide number panels share a row with panels of the usual
    // height.
    .height(show === 'number' && (text.width ?? 4) < 8 ? 4 : 8);
  for (const [index, query] of queries.entries()) panel.withTarget(target(query, index, show));
  return panel;
}

function linkOf(runbook: string): string {
  return `Runbook: [${runbook}](${runbookFolder}/${runbook}.md)`;
}

function target({ expr, legend }: Query, index: number, show: Show): DataqueryBuilder {
  const query = new DataqueryBuilder()
    .refId(String.fromCharCode('A'.charCodeAt(0) + index))
    .datasource(dataSource)
    .expr(expr)
    .legendFormat(legend);
  if (show === 'table') return query.instant().format(PromQueryFormat.Table);
  return show === 'number' ? query.instant() : query.range();
}

type AnyPanel =
  | ReturnType<typeof lines>
  | ReturnType<typeof number>
  | ReturnType<typeof states>
  | ReturnType<typeof rows>;

const kinds: Record<Show, (text: PanelText) => AnyPanel> = {
  lines,
  areas: (text) =>
    lines(text).fillOpacity(30).stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal)),
  number,
  states,
  table: rows,
};

function lines({ limits, mayBeNegative }: PanelText) {
  const panel = new timeSeries.PanelBuilder()
    .lineWidth(1)
    .fillOpacity(0)
    .showPoints(common.VisibilityMode.Never)
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.Table)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(['lastNotNull', 'max']),
    )
    .tooltip(
      new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending),
    );
  if (!mayBeNegative) panel.min(0);
  if (!limits) return panel;
  return panel
    .thresholds(thresholds(limits))
    .thresholdsStyle(new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed));
}

/** No timestamp of this product is 30 years old, except 0. */
const never: grafana.ValueMapping = {
  type: grafana.MappingType.RangeToText,
  options: { from: 30 * 365 * 86_400, to: null, result: { text: 'never', color: 'red', index: 0 } },
};

function number({ limits, mayBeNever = false }: PanelText) {
  const panel = new stat.PanelBuilder()
    .graphMode(common.BigValueGraphMode.None)
    .colorMode(limits ? common.BigValueColorMode.Background : common.BigValueColorMode.None)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']));
  if (mayBeNever) panel.mappings([never]);
  return limits ? panel.thresholds(thresholds(limits)) : panel;
}

function states() {
  return new stateTimeline.PanelBuilder()
    .showValue(common.VisibilityMode.Never)
    .mergeValues(true)
    .colorScheme(new grafana.FieldColorBuilder().mode(grafana.FieldColorModeId.Thresholds))
    .thresholds(steps([red, { value: 1, color: 'green' }]))
    .mappings([
      {
        type: grafana.MappingType.ValueToText,
        options: { 0: { text: 'down', color: 'red', index: 0 }, 1: { text: 'up', color: 'green', index: 1 } },
      },
    ]);
}

function rows() {
  return new table.PanelBuilder().showHeader(true).withTransformation({
    id: 'organize',
    options: { excludeByName: { Time: true }, renameByName: { Value: 'value' }, indexByName: {} },
  });
}

function thresholds({ yellow, red: limit }: NonNullable<PanelText['limits']>): grafana.ThresholdsConfigBuilder {
  if (yellow !== undefined && limit < yellow)
    return steps([red, { value: limit, color: 'yellow' }, { value: yellow, color: 'green' }]);
  const middle = yellow === undefined ? [] : [{ value: yellow, color: 'yellow' }];
  return steps([{ value: null, color: 'green' }, ...middle, { value: limit, color: 'red' }]);
}

/**
 * The first threshold of a panel on which low values are bad. Grafana requires null as its value, because the first
 * threshold has no lower bound.
 */
const red: grafana.Threshold = { value: null, color: 'red' };

function steps(list: grafana.Threshold[]): grafana.ThresholdsConfigBuilder {
  return new grafana.ThresholdsConfigBuilder().mode(grafana.ThresholdsMode.Absolute).steps(list);
}
