// Notices that the event loop was blocked, by a heartbeat that comes late. A single long block is remembered for some
// seconds: a pod that blocks again and again answers its probes in between.

export interface EventLoopWatch {
  /** Why the pod should get no requests; undefined while the event loop turns. */
  problem(): string | undefined;
  stop(): void;
}

/** Times in milliseconds. */
export interface EventLoopPace {
  beat: number;
  /** By which a heartbeat may be late. A busy process is late by some hundreds. */
  longestDelay: number;
  /** For which a block counts. */
  memory: number;
}

/** Two probes of the chart fail after a block, which is what it takes to leave the load balancer. */
const usualPace: EventLoopPace = { beat: 500, longestDelay: 3_000, memory: 10_000 };

export function watchEventLoop({ beat, longestDelay, memory } = usualPace): EventLoopWatch {
  let last = performance.now();
  let blockedAt = Number.NEGATIVE_INFINITY;
  const look = (): number => {
    const now = performance.now();
    if (now - last - beat >= longestDelay) blockedAt = now;
    return now;
  };
  const timer = setInterval(() => {
    last = look();
  }, beat).unref();
  return {
    problem: () =>
      look() - blockedAt < memory ? `the event loop was blocked for ${longestDelay / 1_000} s or longer` : undefined,
    stop: () => clearInterval(timer),
  };
}
