// The figures that a bench measures, and their table, which shows each figure beside its goal.
import { type Estimate, written } from './statistics.ts';

export interface Figure extends Estimate {
  /** What was measured, with its unit. */
  name: string;
  /** The goal: the value must be at least `least`, or at most `most`. */
  least?: number;
  most?: number;
  digits: number;
}

/** Returns an estimate without an interval, because the variance of a single measurement is unknown. */
export function single(value: number): Estimate {
  return { value, low: value, high: value };
}

/**
 * Returns `reached` or `missed` if the whole confidence interval is on one side of the goal, `not shown` if the goal is
 * within the interval, and an empty string if there is no goal.
 */
export function verdictOf({ low, high, least, most }: Figure): 'reached' | 'missed' | 'not shown' | '' {
  if (least === undefined && most === undefined) return '';
  const [worst, best] = least === undefined ? [-high, -low] : [low, high];
  const goal = least ?? -(most as number);
  if (worst >= goal) return 'reached';
  return best < goal ? 'missed' : 'not shown';
}

export function goalOf({ least, most, digits }: Figure): string {
  if (least !== undefined) return `at least ${least.toFixed(digits)}`;
  return most === undefined ? '' : `at most ${most.toFixed(digits)}`;
}

/** Returns the figures as a Markdown table, including the header rows. */
export function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const value = figure.low === figure.high ? figure.value.toFixed(figure.digits) : written(figure, figure.digits);
    return `| ${figure.name} | ${value} | ${goalOf(figure)} | ${verdictOf(figure)} |`;
  });
  return ['| figure | measured | goal | result |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
