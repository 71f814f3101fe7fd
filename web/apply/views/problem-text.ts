// Chooses the text that people read if a request failed.
import { ApiProblem } from '../api.ts';
import type { Texts } from '../texts/texts.ts';

/** Returns the text for a failed request. `tooMany` makes the text for status 429; it gets the minutes to wait. */
export function problemText(cause: unknown, texts: Texts, tooMany: (minutes: number) => string): string {
  if (!(cause instanceof ApiProblem) || cause.status === 0) return texts.saved.offlineRead;
  if (cause.type === 'intake-closed') return closedText(cause, texts);
  if (cause.status === 409) return texts.states.exists;
  if (cause.status !== 429) return texts.states.failedText;
  return tooMany(Math.max(1, Math.ceil((cause.retryAfterMs ?? 60_000) / 60_000)));
}

function closedText({ opens, closes }: ApiProblem, { states, locale }: Texts): string {
  const dates = [opens && states.opens(dateText(opens, locale)), closes && states.closes(dateText(closes, locale))];
  return [states.closed, ...dates.filter(Boolean)].join(' ');
}

/** A day in words. `date` is an ISO 8601 text. */
export function dateText(date: string, locale: string): string {
  return new Date(date).toLocaleDateString(locale, { dateStyle: 'long' });
}
