// How many deliveries may start now, so that no more than a rate start in a second and none of them in a crowd. A relay
// that delivers as fast as it can takes the time of the requests of its pod. It has no timer of its own.

export interface Throttle {
  /** Whether one may start; then it counts as started. */
  take(): boolean;
  /** Milliseconds until one may start. */
  waitMs(): number;
}

export interface Allowance {
  /** In a second. */
  rate: number;
  /** At once after a pause: what a busy moment held up is made good up to that. */
  burst: number;
}

/** `allowance` is asked for whenever something is to start; `now` in milliseconds. */
export function createThrottle(options: { allowance(): Allowance; now(): number }): Throttle {
  const { allowance, now } = options;
  let left = allowance().burst;
  let at = now();
  const refill = (): Allowance => {
    const moment = now();
    const { rate, burst } = allowance();
    left = Math.min(burst, left + ((moment - at) * rate) / 1_000);
    at = moment;
    return { rate, burst };
  };
  return {
    take() {
      refill();
      if (left < 1) return false;
      left -= 1;
      return true;
    },
    waitMs() {
      const { rate } = refill();
      return Math.max(((1 - left) * 1_000) / rate, 0);
    },
  };
}
