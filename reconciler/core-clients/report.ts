// Reports the outcome of a sync to each resource. Writes the resource's status if it differs from the status in the
// cluster, and creates Events for transitions. Never writes a status twice. If the API server fails when a status is
// written, stops. If it fails when an Event is created, creates no more Events. If it refuses a single status,
// quarantines that status and continues. If it refuses a single Event, continues without that Event.
import type { Clock } from '../../src/service/clock.ts';
import { forEachConcurrent } from '../../src/service/for-each-concurrent.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-calls.ts';
import type { Verdict } from './plan.ts';
import type { Refusals } from './refusals.ts';
import type { CoreClientStatus } from './resource.ts';
import { type Checks, eventsOf, isSameStatus, nextStatus, type SyncResult } from './status.ts';

/** The decision on a resource, the resource's next status, and whether the next status differs from the current one. */
export interface Report {
  verdict: Verdict;
  status: CoreClientStatus;
  differs: boolean;
}

export interface SentReports {
  statuses: number;
  events: number;
  failures: string[];
}

export interface ReportOptions {
  cluster: Cluster;
  clock: Clock;
  log: Logger;
  refusals: Refusals;
  renewLease(): Promise<void>;
  signal?: AbortSignal | undefined;
}

/**
 * Maximum number of concurrent requests. It is high enough for a thousand changes in a few seconds, and low enough not
 * to flood the API server.
 */
const parallel = 8;

export function makeReports(
  verdicts: readonly Verdict[],
  resultOf: (verdict: Verdict) => SyncResult | undefined,
  checks: Checks,
  now: Date,
): Report[] {
  return verdicts.map((verdict) => {
    const status = nextStatus(verdict, resultOf(verdict), checks, now);
    return { verdict, status, differs: !isSameStatus(verdict.resource.status, status) };
  });
}

/** Counts the resources for each condition, such as `Ready=True`. */
export function countConditions(reports: readonly Report[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { type, status } of reports.flatMap((report) => report.status.conditions))
    counts[`${type}=${status}`] = (counts[`${type}=${status}`] ?? 0) + 1;
  return counts;
}

/** Sends the reports. If `renewLease` rejects, rejects with the same reason. */
export async function sendReports(reports: readonly Report[], options: ReportOptions): Promise<SentReports> {
  const sent: SentReports = { statuses: 0, events: 0, failures: [] };
  const failed = { status: false, event: false };
  const waiting = reports.filter(({ differs, verdict }) => differs || verdict.change === 'repaired');

  async function attempt(kind: keyof typeof failed, report: Report, work: () => Promise<unknown>): Promise<boolean> {
    const what = statusOf(report);
    if (failed[kind] || (kind === 'status' && options.refusals.isKnown(what))) return false;
    await options.renewLease();
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      if (error.kind === 'refused') {
        if (kind === 'status') options.refusals.add({ ...what, detail: 'kubernetes refused' });
        else options.log.warn({ resource: report.verdict.resource.name }, error.message);
        return false;
      }
      if (!failed[kind]) {
        sent.failures.push(error.message);
        options.log.error({ kind: error.kind }, error.message);
      }
      failed[kind] = true;
      return false;
    }
  }

  async function send(report: Report): Promise<void> {
    if (failed.status || options.signal?.aborted) return;
    const { verdict, status, differs } = report;
    const { cluster, clock } = options;
    const { resource } = verdict;
    let isOutdated = false;
    if (differs) {
      const isDone = await attempt('status', report, async () => {
        isOutdated = (await cluster.applyStatus(resource, status)) === 'outdated';
      });
      // An outdated resource no longer exists or has changed. The next sync reports its state.
      if (!isDone || isOutdated) return;
      sent.statuses += 1;
    }
    for (const event of eventsOf(verdict, status))
      if (await attempt('event', report, () => cluster.createEvent(resource, event, clock()))) sent.events += 1;
  }

  await forEachConcurrent(waiting, parallel, send);
  return sent;
}

/** Identifies a resource's status in the quarantine. A refused status is retried after the resource has changed. */
function statusOf({ verdict: { resource } }: Report) {
  return { kind: 'core-client-status', subject: resource.uid, version: String(resource.generation) } as const;
}
