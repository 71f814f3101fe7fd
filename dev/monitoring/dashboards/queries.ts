// Builds PromQL from the metrics catalogue. Throws if a metric does not exist, has another type, or lacks a label that
// the query uses. Therefore `npm run docs` fails if a metric is renamed but a dashboard still uses the old name.

/** The facts about a metric that a query needs. They come from the catalogue. */
export interface MetricFacts {
  name: string;
  type: string;
  labels: readonly string[];
}

/**
 * Units of Grafana: seconds, bytes (IEC), a fraction shown as a percentage, requests per second, events per second,
 * events per minute, numbers.
 */
export type Unit = 's' | 'bytes' | 'percentunit' | 'reqps' | 'cps' | 'cpm' | 'short';

export interface Query {
  expr: string;
  unit: Unit;
  /** Legend of each series, with labels as `{{label}}`. */
  legend: string;
}

export interface Selection {
  /** Labels to group by. Each combination of their values is a series. */
  by?: readonly string[];
  /** Further label matchers, such as `status="5xx"`. */
  where?: string;
  /** Legend of each series. By default, the values of the labels in `by`. */
  legend?: string;
  /**
   * If true, the panel shows 0 while there is no series. Set this option for a counter that has no series before its
   * first event.
   */
  quiet?: boolean;
}

/**
 * Selects the series of one release, with the dashboard variables `namespace` and `release`. Of the labels in
 * `targetLabels`, the series of recording rules have only these two.
 */
export const ofRelease = 'namespace="$namespace", release="$release"';
const ofPods = `${ofRelease}, job=~"$job", pod=~"$pod"`;
/** Labels that the chart's ServiceMonitor or the scrape configuration adds to every series. */
const targetLabels = ['namespace', 'release', 'job', 'pod'];
const window = '$__rate_interval';

/**
 * Returns a query for series that Prometheus itself or a recording rule writes. For the labels of recording rules, see
 * `ofRelease`.
 */
export function recorded(expr: string, unit: Unit, { by = [], legend, quiet }: Omit<Selection, 'where'> = {}): Query {
  return finish(expr, unit, { by, quiet: quiet ?? false, ...(legend !== undefined && { legend }) }, expr);
}

export type Queries = ReturnType<typeof createQueries>;

export function createQueries(metrics: readonly MetricFacts[]) {
  const known = new Map(metrics.map((metric) => [metric.name, metric]));

  function select(name: string, type: string, { by = [], where }: Selection, suffix = ''): string {
    const metric = known.get(name);
    if (metric?.type !== type) throw new Error(`${name} is ${metric ? `a ${metric.type}` : 'unknown'}, not a ${type}.`);
    const used = [...by, ...[...(where ?? '').matchAll(/(\w+)\s*[!=]/g)].map(([, label = '']) => label)];
    const missing = used.filter((label) => ![...metric.labels, ...targetLabels].includes(label));
    if (missing.length > 0) throw new Error(`${name} has no label ${missing.join(', ')}.`);
    return `${name}${suffix}{${ofPods}${where ? `, ${where}` : ''}}`;
  }

  function rateOf(name: string, selection: Selection): string {
    return aggregate('sum', `rate(${select(name, 'counter', selection)}[${window}])`, selection.by);
  }

  function gaugeOf(operation: 'sum' | 'max' | 'min', name: string, selection: Selection): string {
    return aggregate(operation, select(name, 'gauge', selection), selection.by);
  }

  return {
    /** Number of events per second that a counter counts. */
    perSecond: (name: string, selection: Selection = {}) =>
      finish(rateOf(name, selection), name.includes('requests') ? 'reqps' : 'cps', selection, name),
    /** Number of events per minute that a counter counts, for events that are rarer than requests. */
    perMinute: (name: string, selection: Selection = {}) =>
      finish(`60 * ${rateOf(name, selection)}`, 'cpm', selection, name),
    /** Growth per second of a counter of seconds or bytes. For CPU seconds, this is the number of processors in use. */
    growth: (name: string, selection: Selection = {}) => finish(rateOf(name, selection), 'short', selection, name),
    /** The sum of the durations that a histogram recorded, as a fraction of the elapsed time. */
    busy: (name: string, selection: Selection = {}) => {
      const sums = `rate(${select(name, 'histogram', selection, '_sum')}[${window}])`;
      return finish(aggregate('sum', sums, selection.by), 'percentunit', selection, name);
    },
    /** Share of events that match `where`. The query has no value while there are no events. */
    share: (name: string, selection: Selection & { where: string }) => {
      const { where, ...all } = selection;
      const part = `(${rateOf(name, selection)} or 0 * ${rateOf(name, all)})`;
      return finish(`${part} / ${rateOf(name, all)}`, 'percentunit', all, where);
    },
    /** A quantile of the values in a histogram. `quantile` is a number such as 0.99. */
    quantile: (quantile: number, name: string, selection: Selection = {}) => {
      const buckets = select(name, 'histogram', selection, '_bucket');
      const rates = aggregate('sum', `rate(${buckets}[${window}])`, [...(selection.by ?? []), 'le']);
      return finish(`histogram_quantile(${quantile}, ${rates})`, unitOf(name), selection, `p${quantile * 100}`);
    },
    /** Adds up a gauge over all pods. Use it if each pod exports its own value. */
    sum: (name: string, selection: Selection = {}) =>
      finish(gaugeOf('sum', name, selection), unitOf(name), selection, name),
    /** Returns the maximum of a gauge over all pods. Use it if all pods read the value from the same store. */
    max: (name: string, selection: Selection = {}) =>
      finish(gaugeOf('max', name, selection), unitOf(name), selection, name),
    min: (name: string, selection: Selection = {}) =>
      finish(gaugeOf('min', name, selection), unitOf(name), selection, name),
    /** Seconds since the timestamp that a gauge exports. `skipsZero` leaves out the timestamp 0, which means never. */
    since: (name: string, { skipsZero = false, ...selection }: Selection & { skipsZero?: boolean } = {}) => {
      const moment = gaugeOf('max', name, selection);
      return finish(`time() - ${skipsZero ? `(${moment} > 0)` : moment}`, 's', selection, name);
    },
    /** Seconds until the timestamp that a gauge exports. */
    until: (name: string, selection: Selection = {}) =>
      finish(`${gaugeOf('min', name, selection)} - time()`, 's', selection, name),
    /** Number of series of a gauge. */
    count: (name: string, selection: Selection = {}) =>
      finish(aggregate('count', select(name, 'gauge', selection), selection.by), 'short', selection, name),
  };
}

function aggregate(operation: string, vector: string, by: readonly string[] = []): string {
  return by.length > 0 ? `${operation} by (${by.join(', ')}) (${vector})` : `${operation}(${vector})`;
}

function finish(expr: string, unit: Unit, { by = [], legend, quiet = false }: Selection, name: string): Query {
  const labels = by.map((label) => `{{${label}}}`).join(' ');
  return {
    expr: quiet ? `(${expr}) or on() ${none(by)}` : expr,
    unit,
    legend: legend ?? (labels || name),
  };
}

/** A series with the value 0 whose legend is `none`. */
function none([label]: readonly string[]): string {
  return label === undefined ? 'vector(0)' : `label_replace(vector(0), "${label}", "none", "", "")`;
}

function unitOf(name: string): Unit {
  if (name.endsWith('_seconds')) return 's';
  return name.endsWith('_bytes') ? 'bytes' : 'short';
}
