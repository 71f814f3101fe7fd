// Defines the metrics of a key ring whose secrets are stored in a database.
import type prom from 'prom-client';
import { createScrapedGauges } from '../operations/scraped-metrics.ts';

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

export function createKeyRingMetrics({ registry, read }: KeyRingMetricsOptions): void {
  createScrapedGauges({
    registry,
    read,
    gauges: {
      formgate_key_ring_current_key_age_seconds: {
        help: 'Time since the first pod started with the current key of KEY_RING',
        samples: ({ currentKeyAge }) => [{ labels: {}, value: currentKeyAge }],
      },
      formgate_key_ring_old_secrets: {
        help: 'Stored registrations and pending deletions of clients whose secrets are not encrypted with the current key of KEY_RING, including those that no key of the key ring can decrypt',
        samples: ({ oldSecrets }) => [{ labels: {}, value: oldSecrets }],
      },
    },
  });
}
