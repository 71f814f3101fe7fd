// Stops components in the reverse order of their start, even if some of them fail to stop.

export interface StopStack {
  /** Registers a component's stop function. If stopping has begun, calls it immediately and throws StoppedError. */
  add(stop: () => Promise<void>): Promise<void>;
  /** Stops everything. Repeated calls wait for the first. Failures are collected into one AggregateError. */
  stop(): Promise<void>;
  readonly isStopping: boolean;
}

/** Thrown if a start was abandoned because a stop was requested. */
export class StoppedError extends Error {}

export function createStopStack(): StopStack {
  const stops: (() => Promise<void>)[] = [];
  let stopped: Promise<void> | undefined;

  async function stopAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let stop = stops.pop(); stop; stop = stops.pop()) await stop().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'Some components did not stop.');
  }

  return {
    add: async (stop) => {
      if (!stopped) return void stops.push(stop);
      await stop();
      throw new StoppedError('Stopped.');
    },
    stop: () => (stopped ??= stopAll()),
    get isStopping() {
      return stopped !== undefined;
    },
  };
}
