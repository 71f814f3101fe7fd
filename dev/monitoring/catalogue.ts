// The catalogue of all metrics. It creates the metrics of each process in an empty registry, without starting a
// service. To each metric it adds the operator's question that the metric answers. docs/metrics.md and the dashboards
// are generated from the catalogue, and tests use it.
import { createAddressMetrics } from '../../src/forms/addresses/address-metrics.ts';
import { createCodeMetrics } from '../../src/forms/codes/code-metrics.ts';
import { createSchemaMetrics } from '../../src/forms/definitions/schema-metrics.ts';
import { createRunMetrics } from '../../src/forms/expiry/metrics.ts';
import { createFormMetrics } from '../../src/forms/forms/form-metrics.ts';
import { createNoticeMetrics as createFormNoticeMetrics } from '../../src/forms/notices/metrics.ts';
import { createOutboxMetrics } from '../../src/forms/outbox/metrics.ts';
import { createStorageMetrics } from '../../src/forms/storage/storage-metrics.ts';
import { createPlatformMetrics } from '../../src/platform/platform-metrics.ts';
import { createJobMetrics } from '../../src/platform-server/job-metrics.ts';
import { createMailMetrics } from '../../src/platform-server/mail-metrics.ts';
import { createNoticeMetrics } from '../../src/platform-server/notifications/notice-metrics.ts';
import { systemClock } from '../../src/service/clock.ts';
import { createKeyRingMetrics } from '../../src/service/keys/key-ring-metrics.ts';
import { createMetrics, type Metrics } from '../../src/service/operations/metrics.ts';
import { createReadinessMetrics } from '../../src/service/operations/readiness-metrics.ts';
import { createStartupMetrics } from '../../src/service/operations/startup-metrics.ts';
import { createClockMetrics } from '../../src/service/postgres/clock-metrics.ts';
import { createQuarantineMetrics } from '../../src/service/quarantine/quarantine-metrics.ts';
import { createRedisMetrics } from '../../src/service/redis/redis-metrics.ts';
import { createWorkerMetrics } from '../../src/service/workers/worker-metrics.ts';
import {
  createCatalogMetrics,
  createLeftoverMetrics,
  createRegistrationMetrics,
} from '../../src/token-handler/clients/client-metrics.ts';
import { createLogoutMetrics } from '../../src/token-handler/logout/logout-metrics.ts';
import { createRefreshMetrics } from '../../src/token-handler/sessions/refresh-metrics.ts';
import { createSessionMetrics } from '../../src/token-handler/sessions/session-metrics.ts';
import { createSignInMetrics } from '../../src/token-handler/sign-in/sign-in-metrics.ts';
import { createConnectionMetrics, createTargetMetrics } from '../../src/token-handler/targets/target-metrics.ts';
import { defaultQuestions, questions } from './questions.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram';

export const monitoredProcesses = ['form-service', 'token-handler', 'platform-server'] as const;
export type MonitoredProcess = (typeof monitoredProcesses)[number];

export interface CatalogueEntry {
  process: MonitoredProcess;
  name: string;
  type: MetricType;
  labels: readonly string[];
  help: string;
  /** The operator's question that the metric answers. */
  question: string;
  /** True for the default metrics of prom-client. */
  isDefault: boolean;
}

const clock = systemClock;
const noQueue = { running: 0, waiting: 0 };
const noDatabase = () => Promise.reject(new Error('There is no database.'));
const noJobs = { count: 0, oldest: null };

/**
 * Functions that create the metrics of each process. They pass empty data sources, because the catalogue reads no
 * values of the metrics.
 */
const creators: Record<MonitoredProcess, (metrics: Metrics) => void> = {
  'form-service'(metrics) {
    const { registry } = metrics;
    createPlatformMetrics(metrics);
    createWorkerMetrics(metrics);
    createSchemaMetrics(metrics);
    createFormMetrics(metrics);
    createCodeMetrics(metrics);
    createFormNoticeMetrics(metrics);
    createAddressMetrics({ registry, isComplete: async () => true });
    createStorageMetrics({ registry, limit: 1, store: { count: async () => ({ near: 0, full: 0 }) } });
    createOutboxMetrics({ registry, clock, store: { backlog: async () => [] } });
    createRunMetrics({ registry, clock, readHistory: async () => undefined });
  },
  'token-handler'(metrics) {
    const { registry } = metrics;
    createPlatformMetrics(metrics);
    createRedisMetrics(metrics);
    createCatalogMetrics(metrics);
    createRegistrationMetrics(metrics);
    createLeftoverMetrics({ registry, read: async () => ({}) });
    createKeyRingMetrics({ registry, read: noDatabase });
    createSessionMetrics({ registry, clock, count: async () => 0 });
    createRefreshMetrics({ registry, queue: () => noQueue });
    createSignInMetrics({ registry, failingClients: () => 0 });
    createLogoutMetrics(metrics);
    createTargetMetrics({ registry, namesTargets: false });
    createConnectionMetrics({ registry, count: () => ({ held: 0, waiting: 0 }) });
  },
  'platform-server'(metrics) {
    const { registry } = metrics;
    createWorkerMetrics(metrics);
    createMailMetrics(metrics);
    createNoticeMetrics(metrics);
    createJobMetrics({ registry, clock, queues: { events: async () => noJobs } });
  },
};

/** Returns the metrics of all processes, sorted by name within each process. Throws if a metric has no question. */
export function createCatalogue(): CatalogueEntry[] {
  return monitoredProcesses.flatMap((process) => metricsOf(process).sort((a, b) => (a.name < b.name ? -1 : 1)));
}

/** Members of prom-client's metrics that its type definitions do not declare. */
interface MetricObject {
  name: string;
  help: string;
  type: MetricType;
  labelNames: readonly string[];
}

/** Creates the metrics of a process in a new registry, as at the start of the process. */
export function createMetricsOf(process: MonitoredProcess): Metrics {
  const metrics = createMetrics(process);
  const { registry } = metrics;
  createReadinessMetrics({ registry, reasons: [], report: async () => ({ draining: false, waitingFor: {} }) });
  createStartupMetrics(metrics);
  createQuarantineMetrics({ registry, store: { counts: async () => [] } });
  createClockMetrics({ registry, clock, pool: { query: noDatabase } });
  creators[process](metrics);
  return metrics;
}

function metricsOf(process: MonitoredProcess): CatalogueEntry[] {
  const { registry } = createMetricsOf(process);
  return (registry.getMetricsAsArray() as unknown as MetricObject[]).map(({ name, help, type, labelNames }) => {
    const isDefault = !name.startsWith('formgate_');
    return { process, name, type, labels: labelNames, help, question: questionOf(name, isDefault), isDefault };
  });
}

function questionOf(name: string, isDefault: boolean): string {
  const prefixes = Object.keys(defaultQuestions).filter((prefix) => isDefault && name.startsWith(prefix));
  const [prefix = ''] = prefixes.sort((a, b) => b.length - a.length);
  const question = questions[name] ?? defaultQuestions[prefix];
  if (question === undefined) throw new Error(`${name} answers no question of dev/monitoring/questions.ts.`);
  return question;
}
