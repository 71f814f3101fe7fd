// Tests what people read after a failed request.
import { describe, expect, it } from 'vitest';
import { ApiProblem, endOf } from '../api.ts';
import { textsOf } from '../texts/texts.ts';
import { problemText } from './problem-text.ts';

describe('the window of a closed form', () => {
  const now = new Date(2026, 5, 15);
  const at = (...parts: [number, number, number, number?]) => new Date(parts[0], parts[1], parts[2], parts[3] ?? 0);
  const textFor = (language: 'en' | 'fr', opens?: Date, closes?: Date) =>
    problemText(
      new ApiProblem(
        409,
        {
          type: 'urn:formgate:problem:intake-closed',
          opens: opens?.toISOString() ?? null,
          closes: closes?.toISOString() ?? null,
        },
        undefined,
        now,
      ),
      textsOf(language),
      () => '',
    );

  it.each([
    ['en', at(2026, 6, 1), at(2026, 8, 1), 'It opens on July 1, 2026. The last day is August 31, 2026.'],
    [
      'en',
      at(2026, 6, 1, 9),
      at(2026, 8, 1, 17),
      'It opens on July 1, 2026 at 09:00. It closes on September 1, 2026 at 17:00.',
    ],
    ['en', at(2025, 0, 1), at(2026, 5, 1), 'The last day was May 31, 2026.'],
    ['en', undefined, at(2026, 5, 1, 12), 'It closed on June 1, 2026 at 12:00.'],
    [
      'fr',
      at(2026, 6, 1, 9),
      at(2026, 8, 1),
      'Il ouvre le 1 juillet 2026 à 09 h 00. Le dernier jour est le 31 août 2026.',
    ],
  ] as const)('is told in the language %s, from %s until %s', (language, opens, closes, text) => {
    expect(textFor(language, opens, closes).replaceAll(/\s/g, ' ')).toBe(`${textsOf(language).states.closed} ${text}`);
  });
});

it.each(['definition-invalid', 'form-held', 'intake-closed', 'storage-full'])(
  'a form that the service refuses because of %s is not shown as sent, nor as started twice',
  (slug) => {
    const problem = new ApiProblem(409, { type: `urn:formgate:problem:${slug}` });
    const { states } = textsOf('en');
    expect(endOf(problem)).toBeUndefined();
    const texts: Record<string, string> = {
      'form-held': states.held,
      'intake-closed': states.closed,
      'storage-full': states.full,
    };
    expect(problemText(problem, textsOf('en'), () => '')).toBe(texts[slug] ?? states.failedText);
  },
);
