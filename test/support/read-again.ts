// Makes a running service fetch data from a platform service again, although it caches the data. Use it after a test
// has changed the data.
import { setTimeout as delay } from 'node:timers/promises';
import { samplesOf } from './metric-growth.ts';

export interface ReadAgain {
  metricsUrl: string;
  /** Name of the platform service in the metrics. */
  dependency: string;
  /** Number of calls after which the cached value cannot come from a call that began before the change. */
  calls: number;
  /** Sends a request for which the service needs the value. */
  ask(): Promise<unknown>;
}

/**
 * Calls `ask` every 60 ms until the service has made `calls` more calls to `dependency`. The lifetime of the service's
 * cache must be shorter than these 60 ms.
 */
export async function readAgain({ metricsUrl, dependency, calls, ask }: ReadAgain): Promise<void> {
  const made = async () => {
    const samples = Object.entries(await samplesOf(metricsUrl, 'formgate_dependency_calls_total'));
    const own = samples.filter(([labels]) => labels.includes(`dependency="${dependency}"`));
    return own.reduce((sum, [, count]) => sum + count, 0);
  };
  const enough = (await made()) + calls;
  for (const deadline = performance.now() + 60_000; (await made()) < enough; await delay(60)) {
    if (performance.now() > deadline) throw new Error(`The service did not read from ${dependency} again.`);
    await ask();
  }
}
