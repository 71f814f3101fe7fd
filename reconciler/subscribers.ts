// Removes duplicate subscribers of forms at the notification service. Each run checks a limited number of the forms
// that may have duplicates. If the service fails or denies access, the forms wait for the next run, and this run still
// succeeds.

import { type CheckOptions, dueChecks, removeOthers, settleChecks } from '../src/forms/expiry/subscriber-checks.ts';
import { failureFields } from '../src/platform/platform-error.ts';
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import type { Writer } from './lease.ts';

export interface SubscriberUpkeep {
  writer: Writer;
  checks: CheckOptions;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}

/** Maximum number of checks in a run. Each check makes at least one call to the notification service. */
const checksOfRun = 500;

/**
 * Removes duplicate subscribers, and returns their number. In a dry run, returns the number of forms to check instead.
 */
export async function removeOtherSubscribers({
  writer,
  checks,
  clock,
  log,
  signal,
}: SubscriberUpkeep): Promise<number> {
  const due = await writer.transact((client) => dueChecks(client, clock(), checksOfRun));
  if (writer.dryRun) return due.length;
  const settled: string[] = [];
  let removed = 0;
  for (const check of due) {
    if (signal.aborted) break;
    try {
      const others = await removeOthers(check, checks);
      if (others > 0) log.warn({ form: check.formId, tenant: check.tenantId, others }, 'duplicate subscribers removed');
      removed += others;
      settled.push(check.formId);
    } catch (error) {
      log.warn({ waiting: due.length - settled.length, ...failureFields(error) }, 'subscribers not checked');
      break;
    }
  }
  if (settled.length > 0) await writer.transact((client) => settleChecks(client, settled));
  return removed;
}
