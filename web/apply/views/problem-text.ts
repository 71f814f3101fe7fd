// What people read if a request failed.
import { ApiProblem } from '../api.ts';
import type { Texts } from '../texts/texts.ts';

/** `tooMany` gets the minutes to wait. */
export function problemText(cause: unknown, texts: Texts, tooMany: (minutes: number) => string): string {
  if (!(cause instanceof ApiProblem) || cause.status === 0) return texts.saved.offlineRead;
  if (cause.status !== 429) return texts.states.failedText;
  return tooMany(Math.max(1, Math.ceil((cause.retryAfterMs ?? 60_000) / 60_000)));
}
