// Writes the addresses at which the processes of `npm start` export metrics, for a Prometheus on the same machine. The
// file has the format of Prometheus's file-based service discovery. It sets the same labels as the chart's
// ServiceMonitor, because rules and dashboards use these labels.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const scrapeTargetsFile = 'prometheus-targets.json';

/** Writes the file. Returns a function that removes it. */
export async function writeScrapeTargets(
  directory: string,
  processes: Record<'forms' | 'tokenHandler' | 'platformServer', { metricsPort: number }>,
): Promise<() => Promise<void>> {
  const file = join(directory, scrapeTargetsFile);
  const { forms, tokenHandler, platformServer } = processes;
  // The job names are those of the chart's components.
  const jobs = Object.entries({ forms, 'token-handler': tokenHandler, 'platform-server': platformServer });
  const targets = jobs.map(([job, { metricsPort }]) => ({
    targets: [`127.0.0.1:${metricsPort}`],
    labels: { job, namespace: 'local', release: 'npm-start', pod: `${job}-0` },
  }));
  await writeFile(file, JSON.stringify(targets, undefined, 2));
  return () => rm(file, { force: true });
}
