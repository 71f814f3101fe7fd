// Defines how often upkeep works and retries. All times are in milliseconds. Pure functions only.

export interface UpkeepPace {
  poll: number;
  /**
   * Longest wait after the first failure of a row. The wait doubles with each further failure, up to `longestRetry`.
   */
  firstRetry: number;
  longestRetry: number;
  /**
   * After a pod has claimed a row, no other pod claims it for this time. Must exceed the duration of a call to another
   * service.
   */
  lease: number;
  /** Age at which an unfinished attempt to register counts as interrupted. Must exceed the duration of an attempt. */
  attempt: number;
  /** Number of refusals after which a row is quarantined. */
  refusals: number;
}

/** Returns the default pace. `callTimeout` is the longest duration of a call to another service (PLATFORM_TIMEOUT). */
export function defaultPace(callTimeout: number): UpkeepPace {
  return {
    poll: 5_000,
    firstRetry: 5_000,
    longestRetry: 3_600_000,
    lease: Math.max(60_000, 2 * callTimeout),
    // An attempt makes up to three calls to the identity provider.
    attempt: Math.max(300_000, 6 * callTimeout),
    // Together with the waits between them, ten refusals take at most 45 minutes.
    refusals: 10,
  };
}
