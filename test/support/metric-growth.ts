// Reads the metrics of a running service, and what a test has added to them.
import { noticeOutput } from './captured-log.ts';

/** Returns the values of the samples whose name is `metric`, by their labels as written. */
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

/** Returns by how much each sample of a metric has grown during `work`. Leaves out samples that have not changed. */
export async function growthOf(
  metricsUrl: string,
  metric: string,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const before = await samplesOf(metricsUrl, metric);
  await work();
  const after = await samplesOf(metricsUrl, metric);
  const growth = Object.entries(after).map(([labels, value]) => [labels, value - (before[labels] ?? 0)] as const);
  return Object.fromEntries(growth.filter(([, grown]) => grown !== 0));
}
