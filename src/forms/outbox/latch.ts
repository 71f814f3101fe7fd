// A wait that can be cut short: by a nudge after a local write, by a delivery that makes room, by the end of the relay.
// A nudge that comes while nobody waits is kept for the next wait.

export interface Latch {
  /** Resolves after `ms`, or at once if nudged meanwhile or since the last wait. */
  wait(ms: number): Promise<void>;
  nudge(): void;
}

export function createLatch(): Latch {
  let nudged = false;
  let wake: (() => void) | undefined;
  return {
    async wait(ms) {
      if (!nudged && ms > 0)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      wake = undefined;
      nudged = false;
    },
    nudge() {
      nudged = true;
      wake?.();
    },
  };
}
