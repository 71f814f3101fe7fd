// Compares the console's JSON reader with `JSON.parse`, and tests the positions that the reader records.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lineOf, parseJson, placeOf } from '../../web/console/definitions/editor/json-places.ts';

describe('the reader', () => {
  it('reads what JSON.parse reads, and knows where each value begins', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 3 }), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const { value: read, places, fault } = parseJson(text);
        expect(fault).toBeUndefined();
        expect(JSON.stringify(read)).toBe(JSON.stringify(value));
        expect(places.get('')).toBe(0);
      }),
    );
  });

  it('refuses what JSON.parse refuses', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.nat(),
        fc.constantFrom('', '"', ',', '}', ']', ':', 'x', '\u0000', '\\'),
        (value, at, part) => {
          const text = JSON.stringify(value);
          const index = at % (text.length + 1);
          const broken = text.slice(0, index) + part + text.slice(index + 1);
          const isValid = (() => {
            try {
              JSON.parse(broken);
              return true;
            } catch {
              return false;
            }
          })();
          const { fault } = parseJson(broken);
          // JSON.parse accepts a name that appears twice. The reader reports such a name, because it is probably a
          // mistake.
          if (!fault?.detail.includes('twice')) expect([broken, fault === undefined]).toEqual([broken, isValid]);
        },
      ),
    );
  });
});

it.each([
  ['{\n  "a": 1,\n  "b" 2\n}', 3, 'A colon is missing'],
  ['{"a": 1,\n}', 2, 'A name in double quotes is missing'],
  ['[1\n2]', 2, 'A comma or ] is missing after the item'],
  ['{\n"a": tru\n}', 2, 'A value is missing or malformed'],
  ['{"a": 1,\n"a": 2}', 2, 'The name a appears twice'],
  ['', 1, 'A value is missing or malformed'],
  ['1 2', 1, 'There is text after the end of the value'],
])('the fault of %j is on line %i', (text, line, detail) => {
  const { fault } = parseJson(text);
  expect([lineOf(text, fault?.offset ?? 0), fault?.detail]).toEqual([line, detail]);
});

it('a pointer leads to its value, or to the nearest value around it', () => {
  const text = '{\n "a/b": [\n  1,\n  {"c": true}\n ]\n}';
  const parsed = parseJson(text);
  const line = (pointer: string) => lineOf(text, placeOf(parsed, pointer));
  expect(['', '/a~1b', '/a~1b/1/c', '/a~1b/1/missing/deeper', '/x'].map(line)).toEqual([1, 2, 4, 4, 1]);
});
