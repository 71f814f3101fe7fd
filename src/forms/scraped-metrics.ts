// Gauges whose values are read from the database at each scrape. Every pod exports the same values, so queries must
// aggregate them with max, not sum. The gauges are absent while the database is unavailable.
import prom from 'prom-client';

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

export interface ScrapedGauge<T> {
  help: string;
  /** The label's name. */
  label?: string;
  samples(reading: T): Sample[];
}

export interface ScrapedGaugesOptions<T> {
  registry: prom.Registry;
  /** Returns undefined if there is nothing to export yet. */
  read(): Promise<T | undefined>;
  /** The gauges by metric name. */
  gauges: Record<string, ScrapedGauge<T>>;
}

export function createScrapedGauges<T>({ registry, read, gauges }: ScrapedGaugesOptions<T>): void {
  let reading: Promise<T | undefined> | undefined;
  // A scrape collects all gauges together, so they share one reading.
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
        // A reset sets a gauge without labels to 0. Remove that value.
        if (!label) this.remove();
        for (const sample of values === undefined ? [] : samples(values)) this.set(sample.labels, sample.value);
      },
    });
}
