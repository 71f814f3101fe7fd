// The JSON of a dashboard as Grafana's types describe it. Grafana generates the types of its Foundation SDK from the
// schemas of the server and of each panel. In the SDK's types, a panel may have any options. Here, it has only the
// options of its type.
import type * as grafana from '@grafana/grafana-foundation-sdk/dashboard';
import type * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import type * as stat from '@grafana/grafana-foundation-sdk/stat';
import type * as stateTimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import type * as table from '@grafana/grafana-foundation-sdk/table';
import type * as timeSeries from '@grafana/grafana-foundation-sdk/timeseries';

/** The type of T in JSON: a string enum becomes the texts of its members, and methods are left out. */
type Json<T> = 0 extends 1 & T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : T extends readonly (infer U)[]
        ? Json<U>[]
        : { [K in keyof T as T[K] extends () => void ? never : K]: Json<T[K]> };

type FieldConfig<Custom> = Omit<Json<grafana.FieldConfig>, 'custom'> & { custom?: Json<Custom> };

type PanelOf<Type extends string, Options, Custom> = Omit<
  Json<grafana.Panel>,
  'type' | 'options' | 'fieldConfig' | 'targets'
> & {
  type: Type;
  options?: Partial<Json<Options>>;
  fieldConfig: { defaults: FieldConfig<Custom>; overrides: [] };
  targets: Json<prometheus.Dataquery>[];
};

type PanelJson =
  | PanelOf<'timeseries', timeSeries.Options, timeSeries.FieldConfig>
  | PanelOf<'stat', stat.Options, Record<string, never>>
  | PanelOf<'state-timeline', stateTimeline.Options, stateTimeline.FieldConfig>
  | PanelOf<'table', table.Options, table.FieldConfig>
  | (Omit<Json<grafana.RowPanel>, 'type'> & { type: 'row' });

export type DashboardJson = Omit<Json<grafana.Dashboard>, 'panels'> & { panels: PanelJson[] };
