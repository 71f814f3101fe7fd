// Gauges whose values are read from the database at each scrape. Every pod exports the same values, so a query over all
// pods must take the maximum, not the sum. The gauges are absent while the database is unavailable.
import prom from 'prom-client';

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

export interface ScrapedGauge<T> {
  help: string;
  /** Name of the gauge's label. A gauge without a label has a single value. */
  label?: string;
  samples(reading: T): Sample[];
}

export interface ScrapedGaugesOptions<T> {
  registry: prom.Registry;
  /** Reads the values from the database. Returns undefined if there is nothing to export yet. */
  read(): Promise<T | undefined>;
  /** The gauges by metric name. */
  gauges: Record<string, ScrapedGauge<T>>;
}

export function createScrapedGauges<T>({ registry, read, gauges }: ScrapedGaugesOptions<T>): void {
  let reading: Promise<T | undefined> | undefined;
  // One scrape collects all gauges, so they share one database read.
  const share = () => {
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  for (const [name, { help, label, samples }] of Object.entries(gauges))
    new prom.Gauge({
      name,
      help,
      labelNames: label ? [label] : [],
      registers: [registry],
      async collect() {
        const values = await share();
        this.reset();
        // For a gauge without labels, a reset sets the value to 0 instead of removing it.
        if (!label) this.remove();
        for (const sample of values === undefined ? [] : samples(values)) this.set(sample.labels, sample.value);
      },
    });
}
