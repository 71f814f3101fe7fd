// Gauges whose values are read from Postgres or Redis at each scrape. Every pod exports the same values (except for its
// clock), so a query over all pods must take the maximum, not the sum. The gauges are absent while the values cannot be
// read.
import prom from 'prom-client';

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

export interface ScrapedGauge<T> {
  help: string;
  /** Names of the gauge's labels. A gauge without labels has a single value. */
  labels?: string[];
  samples(reading: T): Sample[];
}

export interface ScrapedGaugesOptions<T> {
  registry: prom.Registry;
  /** Reads the values. Returns undefined if there is nothing to export yet. */
  read(): Promise<T | undefined>;
  /** The gauges by metric name. */
  gauges: Record<string, ScrapedGauge<T>>;
}

export function createScrapedGauges<T>({ registry, read, gauges }: ScrapedGaugesOptions<T>): void {
  let reading: Promise<T | undefined> | undefined;
  // One scrape collects all gauges, so they share one read.
  const share = () => {
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  for (const [name, { help, labels = [], samples }] of Object.entries(gauges))
    new prom.Gauge({
      name,
      help,
      labelNames: labels,
      registers: [registry],
      async collect() {
        const values = await share();
        this.reset();
        // For a gauge without labels, a reset sets the value to 0 instead of removing it.
        if (labels.length === 0) this.remove();
        for (const sample of values === undefined ? [] : samples(values)) this.set(sample.labels, sample.value);
      },
    });
}
