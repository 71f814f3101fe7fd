// Reads the metrics of a running service, and measures by how much a test has increased them.
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { noticeOutput } from './captured-log.ts';

/** Returns the values of the samples whose name is `metric`, keyed by their labels as written. */
export async function samplesOf(metricsUrl: string, metric: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const samples: Record<string, number> = {};
  for (const line of text.split('\n')) {
    if (!line.startsWith('#')) noticeOutput(line);
    const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === metric) samples[labels] = Number(value);
  }
  return samples;
}

/** Milliseconds within which a service counts a request after its client has the response. */
const patience = 1_000;

/**
 * Returns by how much `work` has increased each sample of a metric. Leaves out samples that have not changed. Reads
 * until two results are equal and not empty, because a service may count a request after its client has the response.
 */
export async function growthOf(
  metricsUrl: string,
  metric: string,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const before = await samplesOf(metricsUrl, metric);
  await work();
  let last: Record<string, number> = {};
  for (const deadline = performance.now() + patience; ; await delay(50)) {
    const after = await samplesOf(metricsUrl, metric);
    const growth = Object.entries(after).map(([labels, value]) => [labels, value - (before[labels] ?? 0)] as const);
    const next = Object.fromEntries(growth.filter(([, grown]) => grown !== 0));
    const isSettled = Object.keys(next).length > 0 && isDeepStrictEqual(next, last);
    if (isSettled || performance.now() > deadline) return next;
    last = next;
  }
}
