// Connects a test to a configuration service through the product's own client.
import { cacheTimes } from '../../src/platform/cache.ts';
import { type Configuration, createConfiguration } from '../../src/platform/configuration.ts';
import { HttpAgent } from '../../src/platform/http-agent.ts';
import { createPlatformClient } from '../../src/platform/http-client.ts';
import { createMissBudget } from '../../src/platform/miss-budget.ts';
import { createPlatformMetrics } from '../../src/platform/platform-metrics.ts';
import { createServiceAccount } from '../../src/platform/service-account.ts';
import { type Clock, systemClock } from '../../src/service/clock.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { captureLog } from './captured-log.ts';
import { type Revisions, revisionsOf } from './revisions.ts';

/** A service account, and the URL of its identity provider. */
export interface Account {
  accessUrl: string;
  clientId: string;
  clientSecret: string;
}

export interface ConnectionOptions {
  url: string;
  timeoutMs?: number | undefined;
  clock?: Clock | undefined;
}

export interface Connection {
  configuration: Configuration;
  revisions: Revisions;
  close(): Promise<void>;
}

export function connectConfiguration(by: Account, options: ConnectionOptions): Connection {
  const { clock = systemClock, timeoutMs = 10_000 } = options;
  const agent = new HttpAgent();
  const { log } = captureLog();
  const metrics = createPlatformMetrics(createMetrics());
  const common = { agent, log, metrics, clock, timeoutMs, retryDelayMs: 2, circuitResetMs: 300 };
  // Sign-ins have a longer timeout than the calls under test.
  const account = createServiceAccount({ ...common, ...by, timeoutMs: 10_000 });
  const client = createPlatformClient({
    ...common,
    service: 'configuration',
    account,
    baseUrl: async () => options.url,
  });
  return {
    configuration: createConfiguration({
      ...{ client, clock, times: cacheTimes(), metrics, log },
      budget: createMissBudget(clock, metrics),
    }),
    revisions: revisionsOf(client),
    close: () => agent.destroy(),
  };
}
