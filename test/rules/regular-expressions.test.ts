import { expect, it } from 'vitest';
import { expressionsIn, harmless, isLinear, provedExpressions } from './regular-expressions.ts';

const used = expressionsIn(process.cwd());
const proved = new Set(provedExpressions());

it('each regular expression takes linear time, or does no harm where it is (npm run docs checks new ones)', () => {
  const others = used.filter(
    ({ path, expression }) => !proved.has(expression) && harmless[path]?.[expression] === undefined,
  );
  expect(others).toEqual([]);
});

it('the lists contain no expression that the code no longer has, or that is proved and excused', () => {
  expect([...proved].filter((listed) => !used.some(({ expression }) => expression === listed))).toEqual([]);
  const excused = Object.entries(harmless).flatMap(([path, reasons]) =>
    Object.keys(reasons).map((expression) => ({ path, expression })),
  );
  expect(excused.filter(({ expression }) => proved.has(expression))).toEqual([]);
  for (const entry of excused) expect(used).toContainEqual(entry);
});

it.each([
  ['/\\/+$/', false],
  ['/"(?:[^"\\\\]|\\\\.)*"/g', false],
  ['/^(?:a+)+$/', false],
  ['/"(?:[^"\\\\]|\\\\.)*(?:"|\\\\?$)/gs', true],
  ['/^[a-z]+$/', true],
])('the check judges %s: %s', (expression, expected) => {
  expect(isLinear(expression)).toBe(expected);
});
