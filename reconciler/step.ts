// Runs one step of a run. A failure of the step does not stop the other steps, but the run counts as failed.
import { codeOfError } from '../src/service/error-code.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseProblem } from '../src/service/postgres/postgres.ts';
import { WrongClockError } from './clock-check.ts';
import { LeaseLostError } from './lease.ts';

/** The results to which a failed step adds a message. */
export interface Failures {
  failures: string[];
}

export function fail({ failures }: Failures, log: Logger, what: string, error: unknown): void {
  failures.push(`${what} failed`);
  log.error({ err: error }, `${what} failed`);
}

/**
 * Runs a step. If it fails, records the failure and returns undefined. Rejects only if no later step can succeed (see
 * {@link endsRun}).
 */
export async function attempt<T>(
  what: string,
  { log, outcome }: { log: Logger; outcome: Failures },
  step: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (endsRun(error)) throw error;
    fail(outcome, log, what, error);
    return undefined;
  }
}

/** SQLSTATEs of insufficient resources, such as a full disk. A statement that needs fewer resources may succeed. */
const outOfResources = /^53/;

/** True if another run has taken the lease, if the clocks differ too much, or if the database cannot be reached. */
export function endsRun(error: unknown): boolean {
  if (error instanceof LeaseLostError || error instanceof WrongClockError) return true;
  return databaseProblem(error)?.slug === 'unavailable' && !outOfResources.test(codeOfError(error) ?? '');
}
