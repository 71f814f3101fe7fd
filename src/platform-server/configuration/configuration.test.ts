import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxDepth } from '../../service/http/json-body.ts';
import { applyEdit, deleteProperty, EditError, mergeUpdate } from './configuration.ts';

const json = fc.jsonValue({ maxDepth: 3 });
const object = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), json, { noNullPrototype: true });

describe('UPDATE', () => {
  it('merges two objects one level deep and replaces what is below', () => {
    const latest = { cities: { description: 'Cities', schema: { type: 'array', items: {} } }, other: 1 };
    const merged = mergeUpdate(latest, { cities: { schema: { type: 'array' } } });
    expect(merged).toEqual({ cities: { description: 'Cities', schema: { type: 'array' } }, other: 1 });
  });

  it('appends an array of strings', () => {
    expect(mergeUpdate({ tags: ['a'] }, { tags: ['a', 'b'] })).toEqual({ tags: ['a', 'a', 'b'] });
    expect(mergeUpdate({}, { tags: ['a', 'b'] })).toEqual({ tags: ['a', 'b'] });
  });

  it('uses only the first of an array of objects, and replaces the first entry that has the same url', () => {
    const latest = {
      links: [
        { url: 'x', n: 1 },
        { url: 'y', n: 2 },
        { url: 'y', n: 3 },
      ],
    };
    const update = { links: [{ url: 'y', n: 9 }, { url: 'z' }] };
    expect(mergeUpdate(latest, update)).toEqual({
      links: [
        { url: 'x', n: 1 },
        { url: 'y', n: 9 },
        { url: 'y', n: 3 },
      ],
    });
  });

  it('treats absent urls as equal', () => {
    expect(mergeUpdate({ links: [{ n: 1 }] }, { links: [{ n: 2 }] })).toEqual({ links: [{ n: 2 }] });
  });

  it('appends the first of an array of objects if its url is new, and creates a missing array with it alone', () => {
    expect(mergeUpdate({ links: [{ url: 'x' }] }, { links: [{ url: 'z' }] })).toEqual({
      links: [{ url: 'x' }, { url: 'z' }],
    });
    expect(mergeUpdate({}, { links: [{ url: 'x' }, { url: 'z' }] })).toEqual({ links: [{ url: 'x' }] });
  });

  it('replaces all other values: numbers, strings, arrays of numbers, an empty array, an array over a string', () => {
    const latest = { a: { b: 1 }, n: [1], s: 'x', t: 'x', e: ['x'] };
    const update = { a: 5, n: [2], s: 'y', t: ['z'], e: [] };
    expect(mergeUpdate(latest, update)).toEqual(update);
  });

  it('refuses null, except that null in place of an object changes nothing', () => {
    expect(() => mergeUpdate({ a: 1 }, { a: null })).toThrow(EditError);
    expect(() => mergeUpdate({}, { a: null })).toThrow(EditError);
    expect(mergeUpdate({ a: { b: 1 } }, { a: null })).toEqual({ a: { b: 1 } });
  });

  it('is refused on an array at the root', () => {
    expect(() => mergeUpdate(['Banff'], { a: 1 })).toThrow(EditError);
  });

  it('keeps every key that the update does not name, and changes neither of its arguments', () => {
    fc.assert(
      fc.property(object, object, (latest, update) => {
        const before = structuredClone([latest, update]);
        let merged: Record<string, unknown> | undefined;
        try {
          merged = mergeUpdate(latest, update);
        } catch (error) {
          expect(error).toBeInstanceOf(EditError);
        }
        expect([latest, update]).toEqual(before);
        if (!merged) return;
        expect(new Set(Object.keys(merged))).toEqual(new Set([...Object.keys(latest), ...Object.keys(update)]));
        for (const key of Object.keys(latest).filter((name) => !Object.hasOwn(update, name)))
          expect(merged[key]).toEqual(latest[key]);
      }),
    );
  });

  it('of objects only is idempotent', () => {
    const objects = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), object, { noNullPrototype: true });
    fc.assert(
      fc.property(objects, objects, (latest, update) => {
        const once = mergeUpdate(latest, update);
        expect(isDeepStrictEqual(once, mergeUpdate(once, update))).toBe(true);
      }),
    );
  });

  it('cannot change a prototype', () => {
    const update = JSON.parse(
      '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
    ) as Record<string, unknown>;
    const merged = mergeUpdate({}, update);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
  });
});

describe('DELETE', () => {
  it('removes the literal key where it exists, dots included', () => {
    const latest = { 'a.b': 1, a: { b: 2 } };
    expect(deleteProperty(latest, 'a.b')).toEqual({ a: { b: 2 } });
  });

  it('reads a key that does not exist as a dotted path', () => {
    expect(deleteProperty({ clients: { one: 1, two: 2 } }, 'clients.one')).toEqual({ clients: { two: 2 } });
  });

  it('changes nothing if the path does not exist', () => {
    const latest = { a: { b: 1 }, l: [1] };
    for (const path of ['x', 'a.x', 'a.b.c', 'l.0', 'toString', 'a.constructor'])
      expect(isDeepStrictEqual(deleteProperty(latest, path), latest)).toBe(true);
  });

  it('removes a property at the greatest depth, and ignores a longer path without copying it', () => {
    const path = Array.from({ length: maxDepth }, () => 'a').join('.');
    const nested = (leaf: unknown) => Array.from({ length: maxDepth - 1 }).reduce((inner) => ({ a: inner }), leaf);
    const latest = nested({ a: 1 });
    expect(deleteProperty(latest, path)).toEqual(nested({}));
    const begun = performance.now();
    expect(deleteProperty(latest, `${path}${'.a'.repeat(2_000_000)}`)).toBe(latest);
    // With a copy of the path for each level, this took seconds and a gigabyte.
    expect(performance.now() - begun).toBeLessThan(500);
  });

  it('turns an absent value into an empty object', () => {
    expect(deleteProperty(undefined, 'a')).toEqual({});
  });

  it('removes exactly the named key', () => {
    fc.assert(
      fc.property(object, fc.string({ minLength: 1, maxLength: 8 }), json, (latest, key, value) => {
        const rest = deleteProperty({ ...latest, [key]: value }, key);
        const expected = Object.fromEntries(Object.entries(latest).filter(([name]) => name !== key));
        expect(rest).toEqual(expected);
      }),
    );
  });
});

it('REPLACE takes the value as it is', () => {
  expect(applyEdit({ a: 1 }, { operation: 'REPLACE', configuration: ['Banff'] })).toEqual(['Banff']);
});
