// A fair queue for requests, which counts the refused requests as a metric.
import type { Metrics } from '../operations/metrics.ts';
import { FairQueue, type FairQueueOptions } from './fair-queue.ts';

type RequestQueueOptions = Pick<FairQueueOptions, 'slots' | 'waiting' | 'detail'> & { waitMs?: number };

/** `name` is the name of the queue in metrics. A request waits for at most ten seconds unless `waitMs` is set. */
export function createRequestQueue(
  name: string,
  metrics: Pick<Metrics, 'queueRefusals'>,
  options: RequestQueueOptions,
): FairQueue {
  return new FairQueue({
    waitMs: 10_000,
    retryAfterSeconds: 5,
    ...options,
    onRefused: (reason) => metrics.queueRefusals.inc({ queue: name, reason }),
  });
}
