// Decides whether the service or the row has caused a failed delivery, and whether the row must be quarantined.
import { PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { databaseRefusal, type QuarantineCause, renderingFailure } from '../../service/quarantine/quarantine.ts';

/**
 * Who caused a failed delivery. `service`: the service failed, timed out or rejected the credentials of the form
 * service. `row`: the service refused the row, or the event could not be rendered.
 */
export type FailureSide = 'service' | 'row';

/** The error of a delivery that did not end in time. */
export class DeadlineError extends Error {
  constructor() {
    super('The delivery did not end in time.');
    this.name = 'DeadlineError';
  }
}

/**
 * Decides whether the service or the row has caused an error. Any error other than a failed call, a timeout or a
 * database error means that the row could not be rendered.
 */
export function sideOf(error: unknown): FailureSide {
  if (databaseRefusal(error)) return 'row';
  if (error instanceof DeadlineError || databaseProblem(error)) return 'service';
  if (!(error instanceof PlatformError)) return 'row';
  return serviceRefusal(error) ? 'row' : 'service';
}

/**
 * Returns the reason to quarantine a row. Undefined if waiting may help: for example, an invalid definition may be
 * corrected.
 */
export function causeOf(error: unknown): QuarantineCause | undefined {
  if (sideOf(error) === 'service') return undefined;
  if (error instanceof Problem && error.slug === 'definition-invalid') return undefined;
  return serviceRefusal(error) ?? databaseRefusal(error) ?? renderingFailure(error);
}
