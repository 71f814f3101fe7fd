// Tests that docs/mutation.md shows the stored results, names every security-critical module, and explains only
// survivors that still exist in the code.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { criticalModules } from './critical-modules.ts';
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
  const { modules } = summarize('one', report, { date: '2026-11-23', commit: 'abc' });
  const survivor = { text: 'return true;', original: 'true', replacement: 'false', mutator: 'BooleanLiteral' };
  expect(modules).toEqual([
    {
      ...{ file: 'a.ts', killed: 1, timedOut: 0, survived: 1, uncovered: 1, ignored: 0, unloadable: 1 },
      survivors: [
        { ...survivor, isUncovered: false },
        { ...survivor, isUncovered: true },
      ],
    },
  ]);
  expect(withoutSurvivors(report).files['a.ts']?.mutants.map(({ id }) => id)).toEqual(['1', '4']);
});
