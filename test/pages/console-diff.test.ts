// Tests how the console compares two texts line by line.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { diffLines } from '../../web/console/definitions/diff-lines.ts';

it('shows added and removed lines with three lines around them', () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const after = before.toSpliced(10, 1, 'new');
  expect(diffLines(before.join('\n'), after.join('\n')).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'same …',
    'same line 7',
    'same line 8',
    'same line 9',
    'removed line 10',
    'added new',
    'same line 11',
    'same line 12',
    'same line 13',
    'same …',
  ]);
  expect(diffLines('a\nb', 'a\nb')).toEqual([]);
});

it('unchanged and removed lines give the first text, and unchanged and added lines the second', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 7 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      if (before === after || lines.some(({ text: line }) => line === '…')) return;
      const of = (kind: string) =>
        lines.filter((line) => line.kind === 'same' || line.kind === kind).map((line) => line.text);
      expect([of('removed').join('\n'), of('added').join('\n')]).toEqual([before, after]);
    }),
  );
});
