// Defines the metrics of a key ring whose secrets are stored in a database.
import prom from 'prom-client';

export interface KeyRingReading {
  /** Seconds since the current key was first seen. */
  currentKeyAge: number;
  /** Number of stored secrets that are encrypted with a key other than the current one. */
  oldSecrets: number;
}

export interface KeyRingMetricsOptions {
  registry: prom.Registry;
  /** Called at each scrape. If it throws because the database cannot be read, the gauges are absent. */
  read(): Promise<KeyRingReading>;
}

/** Every pod exports the same values, so queries must aggregate them with max. */
export function createKeyRingMetrics({ registry, read }: KeyRingMetricsOptions): void {
  const gauge = (name: string, help: string, value: (reading: KeyRingReading) => number) =>
    new prom.Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.remove();
        const reading = await read().catch(() => undefined);
        if (reading) this.set(value(reading));
      },
    });
  gauge(
    'formgate_key_ring_current_key_age_seconds',
    'Time since the first pod started with the current key of KEY_RING',
    ({ currentKeyAge }) => currentKeyAge,
  );
  gauge(
    'formgate_key_ring_old_secrets',
    'Stored registrations and pending deletions of clients whose secrets are not encrypted with the current key of KEY_RING, including those that no key of the key ring can decrypt',
    ({ oldSecrets }) => oldSecrets,
  );
}
