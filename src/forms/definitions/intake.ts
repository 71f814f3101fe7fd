// Parses the windows in which forms of a definition can be created and submitted, and finds the open or nearest window.
// All functions are pure.
import { z } from 'zod';
import { issueMessage } from '../../service/http/issue-message.ts';

const moment = z.iso
  .datetime({ offset: true, error: 'must be a date-time with a time zone, such as 2026-09-01T00:00:00-06:00' })
  .transform((text) => new Date(text))
  .nullish();

const windowSchema = z
  .object({ opens: moment, closes: moment })
  .refine(({ opens, closes }) => opens || closes, 'must have opens or closes')
  .refine(({ opens, closes }) => !opens || !closes || opens < closes, {
    path: ['closes'],
    message: 'must be after opens',
  });

/** A period that includes `opens` and excludes `closes`. If one of them is missing, the period is open at that end. */
export type IntakeWindow = z.output<typeof windowSchema>;

const windowsSchema = z.array(windowSchema).min(1).max(100);

/**
 * Parses one window or a list of windows. It does not use a zod union, because the issues of a union would not point to
 * the invalid value.
 */
export const intakeSchema = z
  .unknown()
  .transform((value, context): IntakeWindow[] => {
    const { data, error } = Array.isArray(value)
      ? windowsSchema.safeParse(value, { error: issueMessage })
      : windowSchema.transform((one) => [one]).safeParse(value, { error: issueMessage });
    for (const { path, message } of error?.issues ?? []) context.addIssue({ code: 'custom', path, message });
    return data ?? z.NEVER;
  })
  .nullish();

/** True if a window is open, or if `windows` is missing. An empty list is never open. */
export function isOpen(windows: readonly IntakeWindow[] | null | undefined, now: Date): boolean {
  return !windows || windows.some(({ opens, closes }) => (!opens || opens <= now) && (!closes || now < closes));
}

/**
 * Returns the window that opens next. If no window opens in the future, returns the window that closed last. Call this
 * function only while no window is open.
 */
export function nearestWindow(windows: readonly IntakeWindow[], now: Date): IntakeWindow | undefined {
  const coming = windows.filter(({ opens }) => opens && opens > now);
  const time = (date: Date | null | undefined) => date?.getTime() ?? 0;
  return coming.length > 0
    ? coming.toSorted((one, other) => time(one.opens) - time(other.opens))[0]
    : windows.toSorted((one, other) => time(other.closes) - time(one.closes))[0];
}
