// Chooses the text that people read after a failed request.
import { ApiProblem } from '../api.ts';
import type { Texts } from '../texts/texts.ts';

/** Returns the text for a failed request. `tooMany` makes the text for status 429; it gets the minutes to wait. */
export function problemText(cause: unknown, texts: Texts, tooMany: (minutes: number) => string): string {
  if (!(cause instanceof ApiProblem) || cause.status === 0) return texts.saved.offlineRead;
  if (cause.type === 'intake-closed') return closedText(cause, texts);
  if (cause.type === 'form-exists') return texts.states.exists;
  if (cause.type === 'form-held') return texts.states.held;
  if (cause.type === 'storage-full') return texts.states.full;
  if (cause.status !== 429) return texts.states.failedText;
  return tooMany(Math.max(1, Math.ceil((cause.retryAfterMs ?? 60_000) / 60_000)));
}

/** Returns the text about the closed window: the dates that are still to come, or when the last window ended. */
function closedText({ opens, closes, date }: ApiProblem, { states, locale }: Texts): string {
  const isToCome = (moment: Date) => date === undefined || moment > date;
  const start = opens === undefined ? undefined : new Date(opens);
  const end = closes === undefined ? undefined : new Date(closes);
  const starts = start && isToCome(start) && states.opens(momentText(start, locale));
  return [states.closed, starts, end && endText(end, states, locale, isToCome(end))].filter(Boolean).join(' ');
}

/** `end` is exclusive: if `end` is midnight, the last day is the day before `end`. */
function endText(end: Date, states: Texts['states'], locale: string, isToCome: boolean): string {
  if (!isMidnight(end)) return (isToCome ? states.closes : states.closedOn)(momentText(end, locale));
  const lastDay = new Date(end.getTime() - 1).toISOString();
  return (isToCome ? states.lastDay : states.lastDayWas)(dateText(lastDay, locale));
}

const isMidnight = (date: Date) => date.getHours() === 0 && date.getMinutes() === 0;

/** A day in words, and the time of day if it is not midnight. */
function momentText(date: Date, locale: string): string {
  const time = isMidnight(date) ? {} : ({ timeStyle: 'short', hourCycle: 'h23' } as const);
  return date.toLocaleString(locale, { dateStyle: 'long', ...time });
}

/** A day in words. `date` is an ISO 8601 text. */
export function dateText(date: string, locale: string): string {
  return new Date(date).toLocaleDateString(locale, { dateStyle: 'long' });
}
