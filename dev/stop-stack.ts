// What has to be stopped, in the order opposite to that in which it was started.

export interface StopStack {
  /** Registers what stops something that runs now. When stopping has begun, it is called at once, and this rejects. */
  add(stop: () => Promise<void>): Promise<void>;
  /** Stops everything. Repeated calls wait for the first. Failures are collected into one AggregateError. */
  stop(): Promise<void>;
  readonly isStopping: boolean;
}

/** Says that a start was given up because a stop was asked for. */
export class StoppedError extends Error {}

export function createStopStack(): StopStack {
  const stops: (() => Promise<void>)[] = [];
  let stopped: Promise<void> | undefined;

  async function stopAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let stop = stops.pop(); stop; stop = stops.pop()) await stop().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'Not everything stopped.');
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
