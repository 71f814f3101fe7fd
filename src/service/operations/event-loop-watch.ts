// Detects a blocked event loop by a late heartbeat. A block counts as a problem for some seconds after its end.
// Otherwise, a pod that blocks repeatedly could respond to its probes between two blocks.

export interface EventLoopWatch {
  /** Returns why the pod should get no requests, or undefined while the event loop runs. */
  problem(): string | undefined;
  stop(): void;
}

/** Times in milliseconds. */
export interface EventLoopPace {
  beat: number;
  /** Longest tolerated delay of a heartbeat. Delays in a busy process reach some hundreds of milliseconds. */
  longestDelay: number;
  /** Time after the end of a block during which it still counts as a problem. */
  memory: number;
}

/** With these times, a block makes two of the chart's readiness probes fail, so the pod leaves the load balancer. */
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
