// Searches the logs and metrics of a run's replicas for tokens, cookies, addresses and data of people.
import { Readable } from 'node:stream';
import { checkLogFile, checkOutput } from '../support/output-check.ts';
import type { Replica } from './world/replica.ts';

/** Returns a line for each secret in the logs and metrics, and for each invalid audit event. */
export async function judgeOutput(replicas: Replica[]): Promise<string[]> {
  const found = replicas.map(async ({ logFile, place: { name, metricsPort } }) => {
    const metrics = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).then((response) => response.text());
    const samples = metrics.replaceAll(/^#.*\n/gm, '');
    const [inLog, inMetrics] = await Promise.all([checkLogFile(logFile), checkOutput(Readable.from([samples]))]);
    return [
      ...inLog.map((problem) => `the log of ${name} ${problem}`),
      ...inMetrics.map((problem) => `a metric of ${name} ${problem}`),
    ];
  });
  return (await Promise.all(found)).flat();
}
