// The metrics of limited workers, labelled by the name of their group.
import prom from 'prom-client';
import type { Metrics } from '../operations/metrics.ts';

export function createWorkerMetrics({ registry }: Pick<Metrics, 'registry'>) {
  return {
    jobs: new prom.Counter({
      name: 'formgate_worker_jobs_total',
      help: 'Jobs in child processes that execute code of tenants, by outcome: done, failed, time or memory (the job exceeded this limit), refused (the queue was full, or the job waited too long)',
      labelNames: ['worker', 'outcome'],
      registers: [registry],
    }),
    wait: new prom.Histogram({
      name: 'formgate_worker_wait_seconds',
      help: 'Time that jobs waited for such a child process',
      labelNames: ['worker'],
      buckets: [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10],
      registers: [registry],
    }),
    kills: new prom.Counter({
      name: 'formgate_worker_kills_total',
      help: 'Child processes that executed code of tenants and were ended because of a job',
      labelNames: ['worker'],
      registers: [registry],
    }),
  };
}
