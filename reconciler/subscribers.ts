// Removes duplicate subscribers of forms at the notification service. Each run checks a limited number of the forms
// that may have duplicates, for a limited time. If the service is down or denies access, the forms wait for the next
// run. If the check of one form fails, that form waits for a day, so that it does not block the checks of other forms.
// The run still succeeds.
import {
  type CheckOptions,
  dueChecks,
  postponeChecks,
  removeOthers,
  settleChecks,
} from '../src/forms/expiry/subscriber-checks.ts';
import { failureFields, mayConcernOneCall, PlatformError, serviceRefusal } from '../src/platform/platform-error.ts';
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import type { Writer } from './lease.ts';

export interface SubscriberUpkeep {
  writer: Writer;
  checks: CheckOptions;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  /** Milliseconds after which no further form is checked. */
  timeLimit?: number | undefined;
}

/** Maximum number of checks in a run. Each check makes at least one call to the notification service. */
const checksOfRun = 500;
/** Milliseconds until a form whose check failed is checked again. */
const postponement = 86_400_000;

/**
 * Removes duplicate subscribers, and returns their number. In a dry run, returns the number of forms to check instead.
 */
export async function removeOtherSubscribers({
  writer,
  checks,
  clock,
  log,
  signal,
  timeLimit = 60_000,
}: SubscriberUpkeep): Promise<number> {
  const due = await writer.transact((client) => dueChecks(client, clock(), checksOfRun));
  if (writer.dryRun) return due.length;
  const [settled, postponed]: [string[], string[]] = [[], []];
  let removed = 0;
  let failure: unknown;
  const deadline = performance.now() + timeLimit;
  for (const check of due) {
    // Otherwise, a slow service would delay the next steps, and the next run.
    if (signal.aborted || performance.now() >= deadline) break;
    try {
      const others = await removeOthers(check, checks);
      if (others > 0) log.warn({ form: check.formId, tenant: check.tenantId, others }, 'duplicate subscribers removed');
      removed += others;
      settled.push(check.formId);
    } catch (error) {
      failure ??= error;
      const isOfForm = mayConcernForm(error);
      if (isOfForm || isTimeout(error)) postponed.push(check.formId);
      if (!isOfForm) break;
    }
  }
  const waiting = due.length - settled.length;
  if (failure !== undefined) log.warn({ waiting, ...failureFields(failure) }, 'subscribers not checked');
  if (settled.length > 0) await writer.transact((client) => settleChecks(client, settled));
  const until = new Date(clock().getTime() + postponement);
  if (postponed.length > 0) await writer.transact((client) => postponeChecks(client, postponed, until));
  return removed;
}

/** True if the form itself may have caused the failure. The checks of other forms may then succeed. */
function mayConcernForm(error: unknown): boolean {
  return !(error instanceof PlatformError) || mayConcernOneCall(error) || serviceRefusal(error) !== undefined;
}

/**
 * A timeout ends the checks of this run, because the service may hang for all forms. The next run begins with another
 * form.
 */
const isTimeout = (error: unknown) => error instanceof PlatformError && error.kind === 'timeout';
