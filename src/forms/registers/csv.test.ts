// Tests how entries are written as CSV and read from it, without HTTP.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTable, toCsv } from './csv.ts';
import { importTable } from './import.ts';

const problemOf = (text: string) =>
  readTable(text).then(
    () => 'a table',
    (error: { detail?: string; message: string }) => error.detail ?? error.message,
  );

const load = async (
  text: string,
  existing: unknown[],
  options: { keyField?: string; mode?: 'upsert' | 'replace' } = {},
) => importTable(await readTable(text), existing, { keyField: 'value', mode: 'upsert', ...options });

/**
 * Returns the longest step of `work` between two timers, and its total, as CPU time of this thread in milliseconds. On
 * a busy machine, elapsed time includes the work of other processes.
 */
async function steps(work: () => Promise<unknown>): Promise<{ longest: number; total: number }> {
  const spent = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let longest = 0;
  const begun = spent();
  let last = begun;
  const step = () => {
    longest = Math.max(longest, spent() - last);
    last = spent();
  };
  const timer = setInterval(step, 1);
  await work();
  clearInterval(timer);
  step();
  return { longest, total: spent() - begun };
}

describe('a table', () => {
  it.each([
    ['commas', 'a,b\n1,2\n'],
    ['semicolons', 'a;b\n1;2\n'],
    ['tabs', 'a\tb\n1\t2\n'],
    ['CRLF', 'a,b\r\n1,2\r\n'],
    ['no line break at the end', 'a,b\n1,2'],
    ['empty lines', 'a,b\n\n1,2\n\n'],
    ['spaces around column names', ' a , b\n1,2'],
  ])('may have %s', async (_what, text) => {
    expect(await readTable(text)).toEqual({
      columns: ['a', 'b'],
      rows: [{ line: expect.any(Number), cells: ['1', '2'] }],
    });
  });

  it('keeps delimiters, quotes, line breaks and characters of any length in quoted cells', async () => {
    const { rows } = await readTable(`a,b\n"x, ""y""\nz","${'é😀'.repeat(20_000)}"\n`);
    expect(rows.map(({ cells }) => cells)).toEqual([['x, "y"\nz', 'é😀'.repeat(20_000)]]);
  });

  it.each([
    ['LF, the rows in CRLF', 'a,b\n1,2\r\n\r\n"3\n""x","4\r\n"\r\n5,6\r\n'],
    ['CRLF, the rows in LF', 'a,b\r\n1,2\n\n"3\n""x","4\r\n"\n5,6\n'],
    ['CR, the rows in each kind', 'a,b\r1,2\n\r"3\n""x","4\r\n"\r\n5,6'],
  ])('may mix line breaks: the header ends in %s', async (_what, text) => {
    expect((await readTable(text)).rows).toMatchObject([
      { line: 2, cells: ['1', '2'] },
      { line: 6, cells: ['3\n"x', '4\r\n'] },
      { line: 7, cells: ['5', '6'] },
    ]);
    // Wherever a step of the parser ends.
    for (let length = 16_370; length < 16_390; length += 1) {
      const long = 'x'.repeat(length);
      expect((await readTable(`${text.slice(0, 4)}${text.slice(4).replace('1,', `${long},`)}`)).rows).toMatchObject([
        { line: 2, cells: [long, '2'] },
        { line: 6, cells: ['3\n"x', '4\r\n'] },
        { line: 7, cells: ['5', '6'] },
      ]);
    }
  });

  it('names the line in a table that mixes line breaks', async () => {
    expect(await problemOf('a,b\n1,2\r\n\r\n3\n')).toMatch(/line 4 has another number of cells/);
    expect(await problemOf('a,b\r\n1,2\n\n3\r\n')).toMatch(/line 4 has another number of cells/);
    expect(await problemOf('a,b\r\n"1\r\n\r\nx",2\r\n3\r\n')).toMatch(/line 5 has another number of cells/);
  });

  it.each([
    ['no text', '\n', /has no header/],
    ['an empty column name', 'a,\n1,2\n', /an empty name/],
    ['a repeated column name', 'a,a\n1,2\n', /repeats a name/],
    ['a column named __proto__', '__proto__,a\n1,2\n', /a reserved name/],
    [
      'a hundred and one columns',
      `${'c,'.repeat(100)}c\n`.replace(/c/g, () => `c${Math.random()}`),
      /more than 100 columns/,
    ],
    ['a row that is too short', 'a,b\n1,2\n3\n', /line 3 has another number of cells/],
    ['a quote that is not closed', 'a,b\n1,"2\n', /line \d begins a quoted cell that does not end/],
    ['text after a closing quote', 'a,b\n1,"2"3\n', /line 2 has text after the closing quote/],
    ['more than 10,000 rows', `a\n${'1\n'.repeat(10_001)}`, /more than 10000 rows/],
  ])('of %s is rejected with the line, and without quoting a cell', async (_what, text, detail) => {
    expect(await problemOf(text)).toMatch(detail);
  });

  it('of a megabyte does not block the event loop', async () => {
    const { longest, total } = await steps(async () => {
      await problemOf(','.repeat(1_048_576));
      await readTable(`a,b\n${'"some ""text"", quoted",1\n'.repeat(9_900)}`);
    });
    expect(longest).toBeLessThan(Math.max(100, total / 4));
  });
});

describe('an import', () => {
  const cities = [
    { value: 'banff', label: 'Banff', order: 1, open: true, geo: { lat: 51 } },
    { value: 'jasper', label: 'Jasper', order: 2, open: false, geo: { lat: 52 } },
  ];

  it('adds new keys at the end, changes the columns of known ones, and keeps everything else', async () => {
    expect(await load('value,label\njasper,Jasper Park\nhinton,Hinton\n', cities)).toEqual([
      cities[0],
      { ...cities[1], label: 'Jasper Park' },
      { value: 'hinton', label: 'Hinton' },
    ]);
  });

  it('with mode=replace has the rows of the table in their order, and removes the others', async () => {
    expect(await load('value,label\nhinton,Hinton\nbanff,Banff\n', cities, { mode: 'replace' })).toEqual([
      { value: 'hinton', label: 'Hinton' },
      cities[0],
    ]);
  });

  it('reads numbers, booleans and JSON where all present entries have them, and an empty cell as no member', async () => {
    const text = 'value,order,open,geo,label\njasper,-3.5,true,"{""lat"":1}",\n';
    expect((await load(text, cities))[1]).toEqual({ value: 'jasper', order: -3.5, open: true, geo: { lat: 1 } });
  });

  it.each([
    ['a number', 'value,order\njasper,two\n', /line 2 needs a number in the column order/],
    ['a number that would change', 'value,order\njasper,00012\n', /line 2 needs a number/],
    ['true or false', 'value,open\njasper,yes\n', /line 2 needs true or false/],
    ['JSON', 'value,geo\njasper,{\n', /line 2 needs JSON/],
    ['an integer that is kept', 'value,geo\njasper,[12345678901234567890]\n', /line 2 needs JSON .* would be rounded/],
    ['a number that is not infinite', 'value,geo\njasper,[1e999]\n', /line 2 needs JSON .* too large a number/],
    ['JSON without forbidden names', 'value,geo\njasper,"{""__proto__"":{""x"":1}}"\n', /line 2 .* a forbidden name/],
    ['JSON without repeated names', 'value,geo\njasper,"{""a"":1,""a"":2}"\n', /line 2 .* repeats a name/],
    ['JSON without NUL', `value,geo\njasper,"[""\\u0000""]"\n`, /line 2 .* a NUL character/],
    ['JSON of few levels', `value,geo\njasper,${'['.repeat(20_000)}${']'.repeat(20_000)}\n`, /line 2 .* 100 levels/],
    ['JSON of few values', `value,geo\njasper,"[${'0,'.repeat(200_001)}0]"\n`, /line 2 .* 200000 JSON values/],
    ['a key', 'value,label\n,Nowhere\n', /line 2 has no key/],
    ['one row for each key', 'value,label\nx,1\nx,2\n', /line 3 repeats the key/],
  ])('names the line that needs %s', async (_what, text, detail) => {
    await expect(load(text, cities)).rejects.toMatchObject({ detail: expect.stringMatching(detail) });
  });

  it('needs the column of the key', async () => {
    await expect(load('name,label\nx,y\n', cities)).rejects.toMatchObject({
      errors: [{ pointer: '/query/keyField', detail: 'is not a column of the table' }],
    });
    expect(await load('code,label\nx,y\n', [], { keyField: 'code' })).toEqual([{ code: 'x', label: 'y' }]);
  });

  it('of a single column gives strings, and several columns do not fit a register of strings', async () => {
    expect(await load('city\nBanff\nHinton\n', ['Banff', 'Jasper'])).toEqual(['Banff', 'Jasper', 'Hinton']);
    await expect(load('value,label\na,b\n', ['Banff'])).rejects.toMatchObject({ slug: 'invalid-request' });
  });

  it('is refused if a row has the key of several entries', async () => {
    const twice = [
      { value: 'a', label: '1' },
      { value: 'a', label: '2' },
    ];
    await expect(load('value,label\na,3\n', twice)).rejects.toMatchObject({ slug: 'conflict' });
    const thrice = [...twice, { value: 'a', label: '3' }];
    await expect(load('value,label\na,3\n', thrice)).rejects.toMatchObject({ slug: 'conflict' });
    expect(await load('value,label\nb,3\n', twice)).toHaveLength(3);
  });
});

const text = fc.oneof(
  fc.string(),
  fc.constantFrom('', '=1+1', "'=1", "''@x", '-5', 'a,b', 'a"b', ' x ', 'é\n😀', 'true', '1e5'),
);
const json = fc.jsonValue({ maxDepth: 2 });
const member = fc.constantFrom('label', 'note', 'a b', 'x,y', "it's", '=1+1', "'=1", '@x', '-5', '\tx', ' x', 'x ');
const key = fc.string({ minLength: 1, maxLength: 8 }).filter((value) => value.trim() === value);
const entries = fc.oneof(
  fc.uniqueArray(key, { maxLength: 20 }),
  fc
    .uniqueArray(key, { maxLength: 20, minLength: 1 })
    .chain((keys) =>
      fc.tuple(
        ...keys.map((value) => fc.dictionary(member, fc.oneof(text, json)).map((fields) => ({ value, ...fields }))),
      ),
    ),
);

describe('an export', () => {
  it('that is imported again changes nothing if each entry has its own key', async () => {
    await fc.assert(
      fc.asyncProperty(entries, fc.constantFrom('upsert', 'replace'), async (list, mode) => {
        expect(await load(await toCsv(list), list, { mode } as { mode: 'upsert' | 'replace' })).toEqual(list);
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    ['an empty string', ['', 'a'], /line 2 has no key/],
    ['a string twice', ['a', 'b', 'a'], /line 4 repeats the key of an earlier line/],
    ['an object without a key', [{ value: 'a' }, { label: 'b' }], /line 3 has no key/],
    ['a key twice', [{ value: 'a', label: '1' }, { value: 'a' }], /line 3 repeats the key of an earlier line/],
  ])('of a register that contains %s is refused when it is imported again', async (_what, list, detail) => {
    for (const mode of ['upsert', 'replace'] as const)
      await expect(load(await toCsv(list), list, { mode })).rejects.toMatchObject({
        slug: 'invalid-request',
        detail: expect.stringMatching(detail),
      });
  });

  it('never has a text cell that a spreadsheet would run as a formula', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('=', '+', '-', '@', '\t', '\r'), fc.string(), async (first, rest) => {
        const [, cell = ''] = (await toCsv([{ value: `${first}${rest}` }])).split('\r\n');
        expect(cell).toMatch(/^"?'/);
      }),
    );
  });

  it('of 10,000 entries with 100 members does not block the event loop', async () => {
    const list: object[] = [Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`member ${n}`, n]))];
    while (list.length < 10_000) list.push({});
    const { longest, total } = await steps(async () => toCsv(list));
    expect(longest).toBeLessThan(Math.max(100, total / 4));
  });

  it('has no such cell in its header either', async () => {
    const list = [{ value: 'a', '=HYPERLINK("https://evil.example","Open")': 'b' }];
    expect((await toCsv(list)).split('\r\n')[0]).toBe(`value,"'=HYPERLINK(""https://evil.example"",""Open"")"`);
    expect(await load(await toCsv(list), [], { mode: 'replace' })).toEqual(list);
  });
});
