// Writes the metrics of a registry in the plain text format of Prometheus, or in OpenMetrics, which also carries
// exemplars (https://prometheus.io/docs/specs/om/open_metrics_spec/).
import prom from 'prom-client';

export interface Exposition {
  contentType: string;
  text: string;
}

/**
 * Writes the metrics in the first supported format of `accepted`, else as plain text. `accepted` are the media types of
 * the header Accept, the preferred ones first.
 */
export async function exposeMetrics(registry: prom.Registry, accepted: readonly string[]): Promise<Exposition> {
  const wanted = accepted.find((type) => type === openMetrics || type === 'text/plain');
  const view = wanted === openMetrics ? openMetricsView(registry) : registry;
  return { contentType: view.contentType, text: await view.metrics() };
}

const openMetrics = 'application/openmetrics-text';

/**
 * Returns a second registry that has the same metrics and writes OpenMetrics. It is needed because prom-client renames
 * the counters of a registry when it writes OpenMetrics. In a shared registry, the renaming would change the plain
 * text.
 */
function openMetricsView(registry: prom.Registry): prom.Registry<prom.OpenMetricsContentType> {
  const view = new prom.Registry<prom.OpenMetricsContentType>();
  view.setContentType(prom.openMetricsContentType);
  for (const metric of registry.getMetricsAsArray() as unknown as prom.Metric[])
    view.registerMetric(Object.create(metric, { name: { value: nameOf(metric), writable: true } }));
  return view;
}

function nameOf(metric: prom.Metric): string {
  return (metric as unknown as { name: string }).name;
}
