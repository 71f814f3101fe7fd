// Detects outages of a service from the outcomes of its deliveries, and decides when to probe whether it works again.
import { mayConcernOneCall, PlatformError, serviceRefusal } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import { sideOf } from './failure.ts';

/**
 * What a failed delivery says about the service of its queue. `works`: it refused the row. `fails`: it failed in a way
 * that no row can cause. `responds`: it responded with a failure that the row may have caused, for example because the
 * event is too large, or because its tenant was removed. `silent`: it did not respond; the row may have caused
 * this too. `unknown`: nothing, because the row could not be rendered, or the failure came from another service.
 */
type Verdict = 'works' | 'responds' | 'silent' | 'fails' | 'unknown';

function verdictOf(error: unknown, service: string): Verdict {
  if (sideOf(error) === 'row') return isRefusalBy(service, error) ? 'works' : 'unknown';
  if (!(error instanceof PlatformError)) return 'silent';
  if (mayConcernOneCall(error)) return error.service === 'configuration' ? 'unknown' : 'responds';
  const isSilent = error.kind === 'timeout' || error.kind === 'unreachable' || error.reason === 'truncated';
  return isSilent && error.mayHaveProcessed ? 'silent' : 'fails';
}

const isRefusalBy = (service: string, error: unknown) =>
  error instanceof PlatformError && error.service === service && serviceRefusal(error) !== undefined;

/**
 * Tracks whether a service is down. While the service is down, its queue delivers one row at a time. A tenant whose row
 * fails waits for the next probe. An outage therefore costs a few requests instead of one per row. The outage ends with
 * the first row that the service accepts, so a tenant whose rows always fail does not stop the other tenants.
 *
 * Failures that a row may have caused count as an outage only if they concern several tenants. Otherwise, these rows
 * are only retried with backoff, and the other rows of their tenant are delivered too. A service that does not respond
 * counts as down even if only one tenant is affected, because the circuit breaker of its platform client opens.
 */
export interface Outage {
  /** `probe`: the service was down, and a row of any tenant may now test whether it works again. */
  state(): 'none' | 'probe' | 'down';
  /** The tenants whose rows must wait for the next probe. */
  held(): string[];
  /** Records an accepted delivery. Returns `ended` if it ends a series of failures. */
  succeeded(tenantId: string): 'ended' | undefined;
  /** Records a failed delivery. Returns `ended` if it ends a series of failures. */
  failed(tenantId: string, error: unknown): 'ended' | undefined;
}

export interface OutageOptions {
  service: string;
  clock: Clock;
  backoff: Backoff;
}

/** Number of consecutive failures of the service that count as an outage. */
const limit = 5;

export function createOutage({ service, clock, backoff }: OutageOptions): Outage {
  let failures = 0;
  /**
   * Number of failures with the verdict `fails`. An accepted row, and the verdicts `works` and `responds`, reset it.
   */
  let certain = 0;
  /** Number of waits for a probe since the service went down. 0 while the service works. */
  let waits = 0;
  let probeAt = 0;
  /** The tenants with failed deliveries. The value is the number of `waits` at the tenant's last failure. */
  const failed = new Map<string, number>();
  const now = () => clock().getTime();
  const state = () => {
    if (waits === 0) return 'none';
    return now() < probeAt ? 'down' : 'probe';
  };
  const succeeded = (tenantId: string) => {
    // If only the rows of one other tenant fail, this success does not end that tenant's series of failures.
    const isEnd = failures >= limit && (failed.has(tenantId) || failed.size > 1);
    [failures, certain, waits] = [0, 0, 0];
    failed.clear();
    return isEnd ? 'ended' : undefined;
  };
  return {
    state,
    held: () => (state() === 'down' ? [...failed.keys()].filter((tenant) => failed.get(tenant) === waits) : []),
    succeeded,
    failed(tenantId, error) {
      const [verdict, before] = [verdictOf(error, service), state()];
      if (verdict === 'unknown') return undefined;
      if (verdict === 'works') return succeeded(tenantId);
      failed.set(tenantId, waits);
      // During a wait, a failure only says that the service does not work for this tenant either.
      if (before === 'down') return undefined;
      failures += 1;
      if (verdict === 'fails') certain += 1;
      if (verdict === 'responds') certain = 0;
      const isDown = certain >= limit || (failures >= limit && failed.size > 1);
      waits = isDown ? waits + 1 : 0;
      probeAt = now() + retryDelay(waits, backoff);
      failed.set(tenantId, waits);
      return undefined;
    },
  };
}
