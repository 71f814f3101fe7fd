// Measures contenders in turn, in short rounds. Each turn yields two figures: requests per second, and requests per CPU
// second of the contender's process. Other programs on the machine hardly affect requests per CPU second.
import type { Figure } from './figures.ts';
import { type Estimate, meanOf, ratioOf } from './statistics.ts';

export interface Runner {
  name: string;
  /** CPU seconds of the process since its start, of all threads. */
  cpuSeconds(): Promise<number>;
  /** Sends `requests` requests to the contender, and returns their rate. */
  run(requests: number): Promise<{ perSecond: number }>;
}

export interface RoundsOptions {
  rounds: number;
  /**
   * Number of requests to each contender in each round. With a fixed duration instead, faster contenders would get more
   * warm-up.
   */
  requests: number;
  /** Requests to each contender before the first round. */
  warmUp: number;
  /** Printed at the start of each progress line. */
  title: string;
}

/** The figures of one contender, with one value for each round. */
export interface Turns {
  name: string;
  perCpuSecond: number[];
  perSecond: number[];
}

/** Returns the figures in the order of the contenders. The order of their turns rotates from round to round. */
export async function measureRounds(runners: readonly Runner[], options: RoundsOptions): Promise<Turns[]> {
  const { rounds, requests, warmUp, title } = options;
  const all = runners.map((runner) => ({
    runner,
    turns: { name: runner.name, perCpuSecond: [], perSecond: [] } as Turns,
  }));
  for (const { runner } of all) {
    await runner.run(warmUp);
    console.error(`  ${title}: ${runner.name} is warm`);
  }
  for (let round = 0; round < rounds; round += 1) {
    const first = round % all.length;
    for (const { runner, turns } of [...all.slice(first), ...all.slice(0, first)]) {
      const before = await runner.cpuSeconds();
      const { perSecond } = await runner.run(requests);
      turns.perCpuSecond.push(requests / ((await runner.cpuSeconds()) - before));
      turns.perSecond.push(perSecond);
    }
    console.error(`  ${title}: round ${round + 1} of ${rounds}`);
  }
  return all.map(({ turns }) => turns);
}

export interface Ratios {
  cpu: Estimate;
  rate: Estimate;
}

/** Returns the figures of `own` divided by those of `other`. */
export function compareTurns(own: Turns, other: Turns): Ratios {
  return {
    cpu: ratioOf(own.perCpuSecond, other.perCpuSecond),
    rate: ratioOf(own.perSecond, other.perSecond),
  };
}

/** Returns a contender's mean requests per CPU second and per second, as rows of the report. */
export function figuresOfTurns({ name, perCpuSecond, perSecond }: Turns, operation: string): Figure[] {
  return [
    { name: `${operation}: ${name}, requests per CPU second`, ...meanOf(perCpuSecond), digits: 0 },
    { name: `${operation}: ${name}, requests per second`, ...meanOf(perSecond), digits: 0 },
  ];
}
