// How many deliveries may start now, so that no more than a rate start in a second and none of them in a crowd. A relay
// that delivers as fast as it can takes the time of the requests of its pod. It has no timer of its own.

export interface Throttle {
  /** Whether one may start; then it counts as started. */
  take(): boolean;
  /** Milliseconds until one may start. */
  waitMs(): number;
}

/**
 * `rate` in a second, and after a pause at most `burst()` at once: what a busy moment held up is made good up to that.
 * `now` in milliseconds.
 */
export function createThrottle(options: { rate: number; burst(): number; now(): number }): Throttle {
  const { rate, burst, now } = options;
  let allowance = burst();
  let at = now();
  const refill = () => {
    const moment = now();
    allowance = Math.min(burst(), allowance + ((moment - at) * rate) / 1_000);
    at = moment;
  };
  return {
    take() {
      refill();
      if (allowance < 1) return false;
      allowance -= 1;
      return true;
    },
    waitMs() {
      refill();
      return Math.max(((1 - allowance) * 1_000) / rate, 0);
    },
  };
}
