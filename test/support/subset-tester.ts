// Makes `{}` and regular expressions in `toMatchObject` compare something: Vitest finds no own keys in them, and then
// accepts every actual value. `{}` now matches only an empty object, and a regular expression only a regular
// expression. Write `expect.anything()` for any value, and `expect.stringMatching()` for a pattern.
import { expect } from 'vitest';

const isPlain = (value: object) => [Object.prototype, null].includes(Object.getPrototypeOf(value));
const hasValues = (value: object) => Object.values(value).some((each) => each !== undefined);

/** Returns false for a difference, and undefined to let Vitest compare. */
function compare(actual: unknown, expected: unknown): false | undefined {
  if (typeof expected !== 'object' || expected === null) return undefined;
  if (expected instanceof RegExp) return actual instanceof RegExp ? undefined : false;
  if (!isPlain(expected) || hasValues(expected)) return undefined;
  return typeof actual !== 'object' || actual === null || hasValues(actual) ? false : undefined;
}

// The test files of a worker share the testers, but each file runs this module.
const key = Symbol.for('formgate: subset tester');
if (!Reflect.has(process, key)) {
  Reflect.set(process, key, true);
  expect.addEqualityTesters([compare]);
}
