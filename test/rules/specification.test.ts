// Tests that the tests named in docs/specification.md and docs/specification-token-handler.md exist, and that every
// rule has a test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listFiles, sourceFolders } from './source-files.ts';
import { rulesOf } from './specification.ts';
import { separator, testTitles } from './test-titles.ts';

const root = join(import.meta.dirname, '../..');
const pages = ['docs/specification.md', 'docs/specification-token-handler.md'];
const rulesOfPages = pages.map((page) => rulesOf(readFileSync(join(root, page), 'utf8')));
const rules = rulesOfPages.flat();
const files = listFiles(root, sourceFolders, '.test.ts');
// Modules with tests that two suites share.
const shared = listFiles(root, sourceFolders, '.ts').filter(({ path }) =>
  /^test\/pages\/.*(?<!\.test)\.ts$/.test(path),
);
const declared = new Set(
  [...files, ...shared].flatMap(({ path, text }) => testTitles(text).map((title) => `${path}${separator}${title}`)),
);

test('test titles are found as they are written, with their describes, for every kind of declaration', () => {
  const source = `
    const table = [['it(no)', 1]];
    describe('one', () => {
      it('a plain title', () => expect(/x/.test('no title')).toBe(true));
      describe.each(table)('%s of $two', () => {
        test.each([
          { what: 'no title' },
        ])('with $what | %j', async () => { for (const one of table) await one.it('no title either'); });
      });
    });
    it(\`in back quotes\`, () => undefined);
    it.concurrent('it’s “quoted”', () => undefined);
    it(\`computed \${table.length}\`, () => undefined);`;
  expect(testTitles(source)).toEqual([
    'one › a plain title',
    'one › %s of $two › with $what | %j',
    'in back quotes',
    'it’s “quoted”',
  ]);
});

test('every test file contains tests', () => {
  expect(files.length).toBeGreaterThan(50);
  expect(
    files.filter(({ path }) => ![...declared].some((name) => name.startsWith(path))).map(({ path }) => path),
  ).toEqual([]);
});

test('a row of the specification has a name, a text, and tests or the word later', () => {
  const head = ['| rule | says | tests |', '| --- | --- | --- |'];
  const rows = [
    '| FS-x-1 | A rule. | `a.test.ts › b › c \\| d`<br>`e.test.ts › f` |',
    '| D-y | Another. | later: soon |',
    '| TH-z | A third. | `g.test.ts › h`<br>later: more |',
  ];
  expect(rulesOf([...head, ...rows].join('\n'))).toEqual([
    { id: 'FS-x-1', tests: ['a.test.ts › b › c | d', 'e.test.ts › f'], isLater: false },
    { id: 'D-y', tests: [], isLater: true },
    { id: 'TH-z', tests: ['g.test.ts › h'], isLater: true },
  ]);
  expect(() => rulesOf('| Z-1 | A rule of no document. | `a` |')).toThrow('no rule');
  expect(() => rulesOf('| FS-x-1 | A cell | too | many |')).toThrow('no rule');
  expect(() => rulesOf('| FS-x-1 | A rule. | |')).toThrow('no rule');
  expect(() => rulesOf('| FS-x-1 | A rule. | `a` and more |')).toThrow('no rule');
});

test('every test that the specification names exists', () => {
  const missing = rules.flatMap(({ id, tests }) =>
    tests.filter((name) => !declared.has(name)).map((name) => `${id}: ${name}`),
  );
  expect(missing).toEqual([]);
});

test('every rule of the specification has a unique name', () => {
  const ids = rules.map(({ id }) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('every rule of the specification has a test, or says that it is built later', () => {
  for (const page of rulesOfPages) expect(page.length).toBeGreaterThan(200);
  expect(rules.filter(({ tests, isLater }) => tests.length === 0 && !isLater).map(({ id }) => id)).toEqual([]);
});
