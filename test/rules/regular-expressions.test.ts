import { expect, it } from 'vitest';
import { expressionsIn, harmless, isLinear, provedExpressions } from './regular-expressions.ts';

const expressions = expressionsIn(process.cwd());

it('each regular expression takes linear time, or does no harm (npm run docs checks new ones)', () => {
  const proved = new Set(provedExpressions());
  expect(expressions.filter((expression) => !proved.has(expression) && !(expression in harmless))).toEqual([]);
});

it('the lists contain no expression that the code no longer has', () => {
  expect([...provedExpressions(), ...Object.keys(harmless)].filter((listed) => !expressions.includes(listed))).toEqual(
    [],
  );
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
