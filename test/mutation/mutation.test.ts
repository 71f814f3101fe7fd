// Tests that docs/mutation.md shows the stored results, names every security-critical module, and explains only
// survivors that still exist in the code.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listFiles } from '../rules/source-files.ts';
import { codeHash } from './code-hash.ts';
import { criticalModules, keyRingWiring } from './critical-modules.ts';
import { explanations } from './explanations.ts';
import { explanationOf, mutationPage, readResults } from './page.ts';
import { summarize, withoutSurvivors } from './results.ts';
import { shards } from './shards.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const results = readResults();
const lines = (file: string) =>
  new Set(
    read(file)
      .split('\n')
      .map((line) => line.trim()),
  );

test('docs/mutation.md agrees with the results (npm run docs updates it)', () => {
  expect(read('docs/mutation.md')).toBe(mutationPage(results));
});

test('docs/mutation.md names every security-critical module', () => {
  const critical = criticalModules();
  expect(critical.length).toBeGreaterThan(50);
  const page = read('docs/mutation.md');
  expect(critical.filter((file) => !page.includes(`\`${file}\``))).toEqual([]);
});

test('each module that computes HMACs, encrypts or compares secrets is security-critical', () => {
  const secretCode = /\b(?:create(?:Hmac|Cipheriv|Decipheriv)|timingSafeEqual)\b|\/(?:key-ring|same-text)\.ts'/;
  const files = listFiles(root, ['src', 'reconciler'], '.ts').filter(
    ({ path, text }) => !path.endsWith('.test.ts') && secretCode.test(text),
  );
  expect(files.length).toBeGreaterThan(20);
  const listed = new Set([...criticalModules(), ...keyRingWiring]);
  expect(files.map(({ path }) => path).filter((path) => !listed.has(path))).toEqual([]);
});

test('each shard mutates security-critical modules, and each module belongs to one shard', () => {
  const modules = Object.values(shards).flatMap((shard) => shard.modules);
  expect(new Set(modules).size).toBe(modules.length);
  const critical = new Set(criticalModules());
  expect(modules.filter((file) => !critical.has(file))).toEqual([]);
});

test('each stored result is of a shard that mutates its modules', () => {
  const strangers = results.flatMap(({ shard, modules }) =>
    modules.filter(({ file }) => !shards[shard]?.modules.includes(file)).map(({ file }) => `${file} in ${shard}`),
  );
  expect(strangers).toEqual([]);
});

test('the code of every survivor still exists (npm run mutation -- <shard> updates the results)', () => {
  for (const { shard, modules } of results)
    for (const { file, survivors } of modules) {
      const gone = survivors.filter(({ text }) => !lines(file).has(text));
      expect(gone, `${file} of shard ${shard}`).toEqual([]);
    }
});

test('every explanation explains a survivor', () => {
  const survivors = results.flatMap(({ modules }) =>
    modules.flatMap(({ file, survivors: ofFile }) => ofFile.map((survivor) => ({ file, survivor }))),
  );
  const used = new Set(survivors.map(({ file, survivor }) => explanationOf(file, survivor)));
  expect(explanations.filter((explanation) => !used.has(explanation))).toEqual([]);
  for (const { file, text, changes } of explanations)
    for (const [original, replacement] of changes)
      expect(
        survivors.some(
          (each) =>
            each.file === file &&
            each.survivor.text === text &&
            each.survivor.original === original &&
            each.survivor.replacement === replacement,
        ),
        `${file}: ${original} → ${replacement}`,
      ).toBe(true);
});

test('comments and layout do not change the hash of code; other changes do', () => {
  const hash = codeHash('const a = 1;\nconst b = "// 2";\n');
  const commented = '// Says something.\nconst a = 1; // one\n\n  /* two */ const b = "// 2";\n';
  expect(codeHash(commented)).toBe(hash);
  expect(codeHash('const a = 1;\nconst b = "// 3";\n')).not.toBe(hash);
});

test('a module whose code has changed since its run is marked, and the total leaves it out', () => {
  const file = 'src/service/same-text.ts';
  const counts = { killed: 3, timedOut: 0, survived: 1, uncovered: 0, ignored: 0, unloadable: 0, survivors: [] };
  const page = (codeSha256: string) =>
    mutationPage([{ shard: 'one', date: '2026-11-23', commit: 'abc', modules: [{ file, codeSha256, ...counts }] }]);
  const current = page(codeHash(read(file)));
  expect(current).toContain('In the 1 modules whose code has not changed since their run, 3 of 4 mutants');
  expect(current).toContain('| one, 2026-11-23, abc |');
  const changed = page(codeHash(`${read(file)}changed();`));
  expect(changed).toContain('In the 0 modules whose code has not changed since their run, 0 of 0 mutants');
  expect(changed).toContain('| one, 2026-11-23, abc, *changed since* |');
});

test('a report is reduced to counts and survivors, and survivors run again', () => {
  const mutant = (status: 'Killed' | 'Survived' | 'NoCoverage' | 'RuntimeError', id: string) => ({
    ...{ id, status, mutatorName: 'BooleanLiteral', replacement: 'false' },
    location: { start: { line: 2, column: 10 }, end: { line: 2, column: 14 } },
  });
  const mutants = [
    mutant('Killed', '1'),
    mutant('Survived', '2'),
    mutant('NoCoverage', '3'),
    mutant('RuntimeError', '4'),
  ];
  const report = { files: { 'a.ts': { source: 'function a() {\n  return true;\n}\n', mutants } } };
  const codeSha256 = codeHash('function a() {\n  return true;\n}\n');
  const { modules } = summarize('one', report, { date: '2026-11-23', commit: 'abc' });
  const survivor = { text: 'return true;', original: 'true', replacement: 'false', mutator: 'BooleanLiteral' };
  expect(modules).toEqual([
    {
      ...{ file: 'a.ts', codeSha256, killed: 1, timedOut: 0, survived: 1, uncovered: 1, ignored: 0, unloadable: 1 },
      survivors: [
        { ...survivor, isUncovered: false },
        { ...survivor, isUncovered: true },
      ],
    },
  ]);
  expect(withoutSurvivors(report).files['a.ts']?.mutants.map(({ id }) => id)).toEqual(['1', '4']);
});
