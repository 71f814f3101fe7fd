import { expect, it } from 'vitest';
import {
  buildersIn,
  builtExpressions,
  expressionsIn,
  harmless,
  harmlessBuilders,
  isLinear,
  provedExpressions,
} from './regular-expressions.ts';

const used = expressionsIn(process.cwd());
const proved = new Set(provedExpressions());

it('each regular expression takes linear time, or does no harm where it is (npm run docs checks new ones)', () => {
  const others = used.filter(
    ({ path, expression }) => !proved.has(expression) && harmless[path]?.[expression] === undefined,
  );
  expect(others).toEqual([]);
});

it('each place that builds an expression from a text is checked, or does no harm', () => {
  const builders = buildersIn(process.cwd());
  expect(builders.length).toBeGreaterThan(10);
  const checked = new Set(builtExpressions().map(({ place }) => place));
  // print-built-expressions.ts must load the modules of these places, and call their functions.
  expect(builders.filter(({ path, place }) => !harmlessBuilders[path] && !checked.has(place))).toEqual([]);
  const paths = new Set(builders.map(({ path }) => path));
  expect(Object.keys(harmlessBuilders).filter((path) => !paths.has(path))).toEqual([]);
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
