// Parses ISO 8601 durations in weeks, days, hours, minutes and seconds, such as P15D or PT1H30M. Years and months are
// invalid, because their length depends on the calendar.
import { z } from 'zod';

/**
 * A text is a duration if it matches both patterns. The second pattern rejects a text without any component, or with a
 * final `T`. There are two patterns because Helm reads them from the chart's values schema and uses RE2, which has no
 * lookaheads.
 */
export const durationPatterns = [String.raw`^P(\d+W)?(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$`, '[WDHMS]$'] as const;

const expressions = durationPatterns.map((pattern) => new RegExp(pattern));
const units: Record<string, number> = { W: 604_800_000, D: 86_400_000, H: 3_600_000, M: 60_000, S: 1_000 };

/** A century in milliseconds. Longer durations may exceed the range of dates. */
const longestDuration = 36_525 * 86_400_000;

/** Returns the milliseconds of a duration. Returns undefined if it is invalid or exceeds a century. */
export function parseDuration(text: string): number | undefined {
  if (!expressions.every((expression) => expression.test(text))) return undefined;
  let milliseconds = 0;
  for (const [, number, unit = ''] of text.matchAll(/([\d.]+)([WDHMS])/g))
    milliseconds += Number(number) * (units[unit] ?? 0);
  return milliseconds <= longestDuration ? Math.round(milliseconds) : undefined;
}

/** Marks the schemas of durations for the generator of the chart's values schema. */
export const durationFormat = { format: 'duration' } as const;

/**
 * Parses a duration into milliseconds. `max` is also a duration. If `positive` is true, a duration of zero is invalid.
 */
export function isoDuration(
  defaultValue: string,
  { max, positive = false }: { max?: string; positive?: boolean } = {},
) {
  const most = max === undefined ? longestDuration : (parseDuration(max) ?? 0);
  return z
    .string()
    .default(defaultValue)
    .transform((text, context) => {
      const milliseconds = parseDuration(text);
      if (milliseconds === undefined) context.addIssue('must be an ISO 8601 duration such as P15D or PT10M');
      else if (milliseconds > most) context.addIssue(`must be at most ${max}`);
      else if (positive && milliseconds === 0) context.addIssue('must be longer than PT0S');
      return milliseconds ?? 0;
    })
    .meta(durationFormat);
}
