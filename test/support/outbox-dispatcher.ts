// Starts an outbox dispatcher on a given database. It uses the real platform clients, with one address for all
// services. A test can also run this file as a separate process, in order to kill it. The process reads the variables
// DATABASE_URL, SINK_URL and PACE (JSON).
import pg from 'pg';
import pino from 'pino';
import { createDelivery, type EventDefinitions } from '../../src/forms/outbox/delivery.ts';
import { type Dispatcher, type DispatcherPace, startDispatcher } from '../../src/forms/outbox/dispatcher.ts';
import { createFileService } from '../../src/forms/outbox/files.ts';
import { createOutboxMetrics } from '../../src/forms/outbox/metrics.ts';
import { createOutboxStore } from '../../src/forms/outbox/store.ts';
import { createSubscribeNow, type SubscribeNow } from '../../src/forms/outbox/subscribe-now.ts';
import { createEvents } from '../../src/platform/events.ts';
import { HttpAgent } from '../../src/platform/http-agent.ts';
import { createPlatformClient } from '../../src/platform/http-client.ts';
import { createKnownType } from '../../src/platform/known-type.ts';
import { createNotifications } from '../../src/platform/notifications.ts';
import { createPlatformMetrics } from '../../src/platform/platform-metrics.ts';
import { type Clock, systemClock } from '../../src/service/clock.ts';
import { createMetrics, type Metrics } from '../../src/service/operations/metrics.ts';
import { createUrns } from '../../src/service/urn.ts';

export interface TestDispatcherOptions {
  databaseUrl: string;
  sinkUrl: string;
  pace?: Partial<DispatcherPace>;
  clock?: Clock;
  deleteFiles?: boolean;
  /** Milliseconds after which a delivery stores the files that it has not removed yet. */
  fileTime?: number;
  definitions?: EventDefinitions;
  /** Receives the log lines of the dispatcher. */
  write?(line: string): void;
}

export interface TestDispatcher extends Dispatcher {
  metrics: Metrics;
  subscribeNow: SubscribeNow;
}

/** Short pauses: milliseconds instead of the seconds in production. */
export const quick: Partial<DispatcherPace> = {
  poll: { min: 5, max: 20 },
  retry: { service: { first: 20, cap: 100 }, row: { first: 20, cap: 100 } },
  outage: { first: 20, cap: 100 },
};

const permit: EventDefinitions = { find: async (_tenant, id) => ({ id, name: 'Permit' }) };

export function startTestDispatcher(options: TestDispatcherOptions): TestDispatcher {
  const { clock = systemClock, deleteFiles = false, sinkUrl } = options;
  const pool = new pg.Pool({ connectionString: options.databaseUrl, max: 4 });
  pool.on('error', () => undefined);
  const metrics = createMetrics();
  const platformMetrics = createPlatformMetrics(metrics);
  const log = pino({ level: 'info' }, { write: (line: string) => options.write?.(line) });
  const agent = new HttpAgent();
  const client = (service: string, path: string) =>
    createPlatformClient({
      service,
      agent,
      metrics: platformMetrics,
      log,
      baseUrl: async () => `${sinkUrl}${path}`,
      retryDelayMs: 10,
      circuitResetMs: 50,
    });
  const [events, notifications, files] = [
    client('events', '/event/v1'),
    client('notifications', '/subscription/v1'),
    client('files', '/file/v1'),
  ];
  const store = createOutboxStore({ pool, removalDelay: 15 * 60_000, noticeTime: 0, deleteFiles });
  const deliver = createDelivery({
    events: createEvents(events),
    notifications: createNotifications(notifications, createKnownType({ metrics: platformMetrics, log })),
    files: deleteFiles ? createFileService(files) : undefined,
    definitions: options.definitions ?? permit,
    readData: store.readData,
    urns: createUrns('urn:example'),
    clock,
    recheck: 60_000,
    fileTime: options.fileTime ?? 10_000,
  });
  const dispatcher = startDispatcher({
    store,
    deliver,
    metrics: createOutboxMetrics({ registry: metrics.registry, store, clock }),
    clock,
    log,
    callTimeout: 10_000,
    // This process serves no callers, so the dispatcher always delivers at its idle rate.
    traffic: { isServing: () => false, close: () => undefined },
    pace: { ...quick, ...options.pace },
  });
  return {
    metrics,
    subscribeNow: createSubscribeNow({ store, deliver, clock, callTimeout: 10_000 }),
    nudge: dispatcher.nudge,
    async stop() {
      await dispatcher.stop();
      await agent.destroy();
      await pool.end();
    },
  };
}

if (import.meta.main) {
  const { DATABASE_URL, SINK_URL, PACE } = process.env;
  startTestDispatcher({
    databaseUrl: DATABASE_URL ?? '',
    sinkUrl: SINK_URL ?? '',
    pace: JSON.parse(PACE ?? '{}') as Partial<DispatcherPace>,
  });
}
