// Measures durations on a machine that other processes keep busy.
import { performance } from 'node:perf_hooks';

const tick = 10;
/** A tick that took longer than this was a stall: the machine ran something else. */
const longestTick = 3 * tick;

export interface Stopwatch {
  /** Returns the milliseconds since the start, and stops. */
  stop(): number;
}

/**
 * Starts a stopwatch that ignores most of the time in which this process waited for a processor. Use it to limit waits
 * for timers, sockets and other processes. It cannot measure work that blocks the event loop.
 */
export function startStopwatch(): Stopwatch {
  let counted = 0;
  let last = performance.now();
  const count = () => {
    const now = performance.now();
    counted += Math.min(now - last, longestTick);
    last = now;
  };
  const timer = setInterval(count, tick).unref();
  return {
    stop() {
      clearInterval(timer);
      count();
      return counted;
    },
  };
}

/**
 * Returns the milliseconds of CPU time that the work takes on this thread. CPU time does not depend on other processes.
 */
export function cpuOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

export interface Turns<T> {
  result: T;
  /** The longest CPU time in milliseconds that this thread took between two timers. */
  longest: number;
  /** How often a timer ran. */
  count: number;
}

/**
 * Runs `work`, and measures for how long it keeps the event loop of this thread from running timers. Counts CPU time,
 * so that a busy machine does not make a block seem longer.
 */
export async function turnsOf<T>(work: () => Promise<T>): Promise<Turns<T>> {
  let longest = 0;
  let count = 0;
  let last = process.threadCpuUsage();
  const endTurn = () => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1_000);
    count += 1;
    last = process.threadCpuUsage();
  };
  const timer = setInterval(endTurn, 1);
  try {
    const result = await work();
    endTurn();
    return { result, longest, count };
  } finally {
    clearInterval(timer);
  }
}
