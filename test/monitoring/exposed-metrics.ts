// Parses the text that a process returns at /metrics.
import type { CatalogueEntry } from '../../dev/monitoring/catalogue.ts';

/** One metric as a process exports it. */
export interface ExposedMetric {
  type: string;
  help: string;
  /** The names of the labels of each sample, in the written order, without `le`. */
  labelSets: string[][];
}

/** Returns the names of the series of a metric. */
export function seriesOf({ name, type }: Pick<CatalogueEntry, 'name' | 'type'>): string[] {
  return type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

/** Parses the text of /metrics, and returns the metrics, keyed by name. */
export function parseMetrics(text: string): Map<string, ExposedMetric> {
  const metrics = new Map<string, ExposedMetric>();
  const metricOf = (series: string) => metrics.get(series) ?? metrics.get(series.replace(/_(bucket|sum|count)$/, ''));
  for (const line of text.split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === 'HELP') metrics.set(name, { type: '', help: rest, labelSets: [] });
    else if (kind === 'TYPE') Object.assign(metrics.get(name) ?? {}, { type: rest });
    else if (line !== '' && !line.startsWith('#'))
      metricOf(/^\w+/.exec(line)?.[0] ?? '')?.labelSets.push(labelsOf(line));
  }
  return metrics;
}

function labelsOf(sample: string): string[] {
  const [, labels = ''] = /^\w+\{(.*)\} \S+$/.exec(sample) ?? [];
  return [...labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].flatMap(([, label = '']) => (label === 'le' ? [] : label));
}

/** Returns the number of series in the text of /metrics. */
export function countSeries(text: string): number {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
}
