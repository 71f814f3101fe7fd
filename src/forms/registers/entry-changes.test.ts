// Tests changes of single entries and comparisons of entries, without HTTP.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareEntries, keyOf, maxChanges, putEntry, removeEntry } from './entry-changes.ts';

const cities = [
  { value: 'banff', label: 'Banff' },
  { value: 'jasper', label: 'Jasper' },
];

describe('one entry', () => {
  it('is replaced in its place, or added at the end', () => {
    const banff = { value: 'banff', label: 'Town of Banff' };
    expect(putEntry(cities, 'banff', banff, 'value')).toEqual({ entries: [banff, cities[1]], added: false });
    const hinton = { value: 'hinton' };
    expect(putEntry(cities, 'hinton', hinton, 'value')).toEqual({ entries: [...cities, hinton], added: true });
    expect(putEntry(['a', 'b'], 'a', 'c', 'value')).toEqual({ entries: ['c', 'b'], added: false });
  });

  it('may get another key, but not that of another entry', () => {
    const renamed = { value: 'hinton', label: 'Hinton' };
    expect(putEntry(cities, 'banff', renamed, 'value').entries).toEqual([renamed, cities[1]]);
    expect(() => putEntry(cities, 'banff', { value: 'jasper' }, 'value')).toThrow('Another entry has the new key.');
    expect(() => putEntry(cities, 'hinton', { value: 'other' }, 'value')).toThrow('no entry with this key');
  });

  it('is removed by its key', () => {
    expect(removeEntry(cities, 'banff', 'value')).toEqual([cities[1]]);
    expect(removeEntry([{ id: 7 }, { id: 8 }], '8', 'id')).toEqual([{ id: 7 }]);
    expect(() => removeEntry(cities, 'hinton', 'value')).toThrow('no entry with this key');
  });

  it('is not chosen among several with the same key', () => {
    expect(() => removeEntry(['a', 'a'], 'a', 'value')).toThrow('Several entries have this key');
    expect(() => putEntry(['a', 'a'], 'a', 'b', 'value')).toThrow('Several entries have this key');
  });

  it.each([[{}], [{ value: '' }], [{ value: null }], [{ value: {} }], [''], [null]])('%j has no key', (entry) => {
    expect(keyOf(entry, 'value')).toBeUndefined();
  });

  it('has no key from a prototype', () => expect(keyOf({}, 'constructor')).toBeUndefined());
});

describe('a comparison', () => {
  it('counts and lists what was added, changed and removed', () => {
    const after = [{ value: 'jasper', label: 'Jasper Park' }, { value: 'hinton' }];
    expect(compareEntries(cities, after, 'value')).toEqual({
      ...{ added: 1, changed: 1, removed: 1, unchanged: 0, reordered: false, truncated: false },
      changes: [
        { change: 'changed', key: 'jasper', before: cities[1], after: after[0] },
        { change: 'added', key: 'hinton', after: after[1] },
        { change: 'removed', key: 'banff', before: cities[0] },
      ],
    });
  });

  it('sees another order', () => {
    expect(compareEntries(cities, cities.toReversed(), 'value')).toMatchObject({ unchanged: 2, reordered: true });
  });

  it('lists no more changes than its limit', () => {
    const many = Array.from({ length: maxChanges + 5 }, (_, n) => `${n}`);
    const { added, changes, truncated } = compareEntries([], many, 'value');
    expect([added, changes.length, truncated]).toEqual([maxChanges + 5, maxChanges, true]);
  });

  it('accounts for each entry exactly once, also where keys are missing or repeated', () => {
    const entry = fc.oneof(
      fc.constantFrom<unknown>('a', 'b', { value: 'a' }, { value: 'b', x: 1 }, { value: 1 }, { x: 1 }, { x: 2 }),
    );
    fc.assert(
      fc.property(fc.array(entry), fc.array(entry), (before, after) => {
        const { added, changed, removed, unchanged } = compareEntries(before, after, 'value');
        expect(added + changed + unchanged).toBe(after.length);
        expect(removed + changed + unchanged).toBe(before.length);
        expect(compareEntries(before, before, 'value')).toMatchObject({ unchanged: before.length, reordered: false });
      }),
    );
  });
});
