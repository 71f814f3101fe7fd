// Tests the rules for the names, parts, entries and pages of registers, without HTTP.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  definitionIn,
  definitionKey,
  definitionsIn,
  entriesOf,
  entryProblems,
  maxEntries,
  maxEntriesBytes,
  namePattern,
  newDefinition,
  registerOf,
  toRegister,
} from './register.ts';
import { createRegisterPage } from './register-page.ts';
import { encodeCursor, listQuery } from './schema.ts';

const allowed = [...'ABCXYZabcxyz0189 -_'];

describe('Limits 1, register name', () => {
  it.each(['a', '7', '-', '_', 'Cities of the North', 'a'.repeat(50), '__proto__', 'constructor', 'a  b', '-_-'])(
    '%j is a name',
    (name) => expect(namePattern.test(name)).toBe(true),
  );

  it.each([
    ['nothing', ''],
    ['51 characters', 'a'.repeat(51)],
    ['a space', ' '],
    ['a space at the start', ' a'],
    ['a space at the end', 'a '],
    ['a newline at the end', 'a\n'],
    ['a no-break space at the end', 'a\u00a0'],
    ['a no-break space inside', 'a\u00a0b'],
    ['a tab', 'a\tb'],
    ['a dot', 'a.b'],
    ['two dots', '..'],
    ['a slash', 'a/b'],
    ['a backslash', 'a\\b'],
    ['a colon', 'a:b'],
    ['a percent sign', '%2e'],
    ['a letter that is not ASCII', 'Québec'],
    ['a Kelvin sign, which lower-cases to k', '\u212a'],
    ['a full-width letter', '\uff41'],
    ['an emoji', '🍁'],
    ['NUL', 'a\0b'],
    ['a zero-width space', 'a\u200bb'],
  ])('%s is not a name', (_what, name) => {
    expect(namePattern.test(name)).toBe(false);
  });

  it('a name is 1 to 50 of the allowed characters without a space at either end, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.oneof(fc.constantFrom(...allowed), fc.string({ maxLength: 1 })), maxLength: 55 }),
        (text) => {
          const inside = [...text].every((character) => /[A-Za-z0-9 _-]/.test(character) && character.length === 1);
          const expected = inside && text.length >= 1 && text.length <= 50 && text === text.trim();
          expect(namePattern.test(text)).toBe(expected);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('Rule 1, existence', () => {
  const definition = { hasArraySchema: true, description: 'Towns', anonymousRead: false };
  const latest = { revision: 0, configuration: ['Banff'] };

  it('a register needs both parts, and an array schema in its definition', () => {
    expect(registerOf('x', { definition, latest })).toEqual({
      namespace: 'data-register',
      name: 'x',
      description: 'Towns',
      entries: ['Banff'],
    });
    expect(registerOf('x', { definition })).toBeUndefined();
    expect(registerOf('x', { latest })).toBeUndefined();
    expect(registerOf('x', { definition: { ...definition, hasArraySchema: false }, latest })).toBeUndefined();
  });

  it.each([{}, null, 'Banff', 1, { 0: 'Banff' }])(
    '%j in place of an array is a register without entries',
    (configuration) => {
      expect(entriesOf({ latest: { revision: 0, configuration } })).toBeUndefined();
    },
  );

  it('entries are those of the active revision if there is one', () => {
    expect(entriesOf({ latest, active: { revision: 3, configuration: ['Jasper'] } })).toEqual(['Jasper']);
  });

  it.each([
    [{ type: 'array' }, true],
    [{ type: ['array'] }, true],
    [{ type: 'array', items: { type: 'string' } }, true],
    [{ type: ['array', 'null'] }, false],
    [{ type: 'object' }, false],
    [{}, false],
    [true, false],
    [null, false],
  ])('a definition with the schema %j has an array schema: %s', (configurationSchema, hasArraySchema) => {
    const document = { [definitionKey('x')]: { configurationSchema } };
    expect(definitionIn(document, 'x')).toEqual({ hasArraySchema, description: '', anonymousRead: false });
    expect(definitionsIn(document).has('x')).toBe(hasArraySchema);
  });

  it('only keys of register names are registers, and no name reaches a prototype', () => {
    const array = newDefinition('');
    const keys = [
      'data-register:a',
      'data-register: a',
      'data-register:',
      'data-register',
      'data-registers:a',
      'form-service:a',
    ];
    const document = Object.fromEntries(keys.map((key) => [key, array]));
    expect([...definitionsIn(document).keys()]).toEqual(['a']);
    expect(definitionIn({}, '__proto__')).toBeUndefined();
    expect(definitionIn({}, 'constructor')).toBeUndefined();
    for (const nothing of [undefined, null, [], 'text']) expect(definitionsIn(nothing).size).toBe(0);
  });

  it('only anonymousRead true makes a register open', () => {
    for (const [anonymousRead, isOpen] of [
      [true, true],
      ['true', false],
      [1, false],
      [false, false],
    ] as const)
      expect(definitionIn({ 'data-register:x': { anonymousRead } }, 'x')?.anonymousRead).toBe(isOpen);
  });
});

describe('Rule 4 and Limits 2, entries', () => {
  it('all strings, all objects and no entries are accepted', () => {
    for (const entries of [[], ['', 'a'], [{}, { a: [1, null] }]]) expect(entryProblems(entries)).toEqual([]);
  });

  it('a mixture is refused at the first item that differs', () => {
    expect(entryProblems(['a', {}])).toEqual([{ path: [1], detail: 'must be a string as the first item is' }]);
    expect(entryProblems([{}, {}, 'a'])).toEqual([{ path: [2], detail: 'must be an object as the first item is' }]);
  });

  it.each([
    [{ META_note: 1 }, ['META_note']],
    [{ label: 'Banff', _bsontype: 'Binary' }, ['_bsontype']],
    [{ a: [{}, { META_: null }] }, ['a', '1', 'META_']],
  ])('%j is refused for its reserved member, at any depth', (entry, path) => {
    expect(entryProblems([{}, entry])).toEqual([{ path: [1, ...path], detail: 'is a reserved name' }]);
  });

  it('a reserved name may be a value, or part of another name', () => {
    expect(entryProblems([{ a: '_bsontype', Meta_: 'META_', meta_: 1, aMETA_: 1, _bsontypes: 1 }])).toEqual([]);
    expect(entryProblems(['META_note', '_bsontype'])).toEqual([]);
  });

  it('anything but arrays of strings and arrays of objects is refused', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 6 }), (entries) => {
        const isObject = (entry: unknown) => typeof entry === 'object' && entry !== null && !Array.isArray(entry);
        const isRight = entries.every((entry) => typeof entry === 'string') || entries.every(isObject);
        expect(entryProblems(entries).length === 0).toBe(isRight);
      }),
    );
  });

  it('10,000 entries are accepted and one more is not', () => {
    const entries = Array.from({ length: maxEntries }, (_, index) => `${index}`);
    expect(entryProblems(entries)).toEqual([]);
    expect(entryProblems([...entries, 'one more'])).toEqual([{ path: [], detail: 'must have at most 10000 items' }]);
  });

  it('1 MiB of JSON in UTF-8 is accepted and one byte more is not', () => {
    const entries = ['é'.repeat((maxEntriesBytes - 4) / 2)];
    expect(entryProblems(entries)).toEqual([]);
    expect(entryProblems([`${entries[0]}x`])).toHaveLength(1);
  });

  it('200,000 JSON values in all entries are accepted, and more are not, because no document may have more', () => {
    const zeros = (length: number) => ({ a: Array.from({ length }, () => 0) });
    // Each comma and each opening bracket counts as a value.
    const entries = [zeros(100_000), zeros(99_996)];
    expect(entryProblems(entries)).toEqual([]);
    expect(entryProblems([...entries, {}])).toEqual([{ path: [], detail: 'has more than 200000 JSON values' }]);
  });

  it('at most 20 invalid entries are listed, so that the response stays small', () => {
    expect(entryProblems(Array.from({ length: 10_000 }, () => 1))).toHaveLength(20);
  });
});

describe('A page of registers', () => {
  const options = { top: 3, maxBytes: 1_000_000 };
  const pageOf = (given: typeof options, registers: readonly [name: string, entries: string[]][]) => {
    const page = createRegisterPage(given);
    for (const [name, entries] of registers) page.add(toRegister(name, 'd', entries));
    return page.result();
  };

  it('is sorted by name, has at most top registers, and names the last one if there are more', () => {
    const { registers, next } = pageOf(options, [
      ['d', []],
      ['a', []],
      ['b', []],
      ['C', []],
    ]);
    expect(registers.map(({ name }) => name)).toEqual(['C', 'a', 'b']);
    expect(next).toBe('b');
  });

  it('ends early at its limit of bytes, but always has one register', () => {
    const page = pageOf({ ...options, maxBytes: 10 }, [
      ['a', ['much more than ten bytes']],
      ['b', []],
    ]);
    expect(page).toMatchObject({ registers: [{ name: 'a' }], next: 'a' });
  });

  it('never skips a large register that was cut off for a small one behind it that arrives later', () => {
    const page = pageOf({ ...options, maxBytes: 20 }, [
      ['a', ['ten bytes']],
      ['b', ['fifteen bytes']],
      ['c', []],
    ]);
    expect(page).toMatchObject({ registers: [{ name: 'a' }], next: 'a' });
  });

  it('is followed by pages that list each register once, for any order of the input', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[A-Za-z0-9]{1,3}$/), { maxLength: 30 });
    fc.assert(
      fc.property(
        names,
        fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 30, maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 200 }),
        (stored, sizes, top, maxBytes) => {
          const sized = stored.map((name, nth): [string, string[]] => [name, ['x'.repeat(sizes[nth] ?? 0)]]);
          const shown: string[] = [];
          for (let after: string | undefined = '', pages = 0; after !== undefined && pages < 40; pages += 1) {
            const from = after;
            const { registers, next } = pageOf(
              { top, maxBytes },
              sized.filter(([name]) => name > from),
            );
            shown.push(...registers.map(({ name }) => name));
            after = next;
          }
          expect(shown).toEqual(stored.toSorted());
        },
      ),
    );
  });

  it("a cursor decodes to its name, and only a register's name is accepted", () => {
    expect(listQuery.parse({ after: encodeCursor('Cities of the North') }).after).toBe('Cities of the North');
    for (const after of ['x', encodeCursor('../x'), Buffer.from('{}').toString('base64url'), 'é'])
      expect(listQuery.safeParse({ after }).success).toBe(false);
  });
});
