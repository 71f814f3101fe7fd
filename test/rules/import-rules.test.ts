// Tests that each import rule has a fixture that breaks it, and that the repository breaks no rule. Each fixture is
// named after a rule. This rule must report exactly the lines of the fixture that end in `// refused`.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkImports, findBlindSpots, importRuleModules, importRuleNames } from './import-rules.ts';
import { codeEndings, listFiles, sourceFolders } from './source-files.ts';

const root = join(import.meta.dirname, '../..');
const fixtures = join(root, 'test/fixtures/import-rules');

/** Checking the whole repository takes seconds, so two tests share the report. */
let reportOfRoot: ReturnType<typeof checkImports> | undefined;
const checkRoot = () => (reportOfRoot ??= checkImports(root));

function refusedImports(tree: string): string[] {
  return listFiles(tree, sourceFolders, codeEndings).flatMap(({ path, text }) =>
    text
      .split('\n')
      .filter((line) => line.endsWith('// refused'))
      .map((line) => `${path} imports ${/'(?:node:)?([^']+)'/.exec(line)?.[1]}`),
  );
}

test('every import rule has a fixture that breaks it', () => {
  expect(readdirSync(fixtures).sort()).toEqual([...importRuleNames].sort());
});

test.each(importRuleNames)('the rule %s reports exactly the imports that break it', async (rule) => {
  const tree = join(fixtures, rule);
  const expected = refusedImports(tree);
  const report = await checkImports(tree);
  expect(new Set(report.findings.map((finding) => finding.rule))).toEqual(new Set([rule]));
  expect(report.findings.map(({ from, specifier }) => `${from} imports ${specifier}`).sort()).toEqual(expected.sort());
  expect(expected.length).toBeGreaterThan(0);
  expect(findBlindSpots(tree, report)).toEqual([]);
});

test('a layout that follows the architecture breaks no import rule', async () => {
  const tree = join(root, 'test/fixtures/import-legal');
  const report = await checkImports(tree);
  expect(report.findings).toEqual([]);
  expect(findBlindSpots(tree, report)).toEqual([]);
  expect(report.modules.size).toBeGreaterThan(10);
});

test('an import that the checker cannot see is reported', async () => {
  const tree = join(root, 'test/fixtures/import-blind-spots');
  expect(findBlindSpots(tree, await checkImports(tree))).toEqual([
    'src/service/type-expression.ts: the import of ../forms/app.ts was not seen by the import checker',
  ]);
  expect(findBlindSpots(tree, { findings: [], modules: new Map() })).toContain(
    'src/service/clock.ts: not seen by the import checker',
  );
});

test('the checker sees every file of code, and all their imports', async () => {
  const report = await checkRoot();
  const files = listFiles(root, sourceFolders, codeEndings);
  expect(files.filter(({ path }) => path.endsWith('.tsx')).length).toBeGreaterThan(50);
  expect(report.modules.size).toBeGreaterThanOrEqual(files.length);
  expect(findBlindSpots(root, report)).toEqual([]);
});

test('no file of this repository breaks an import rule', async () => {
  const { findings } = await checkRoot();
  expect(findings).toEqual([]);
});

test('every folder with TypeScript is checked, and every module of src has a rule', () => {
  const folders = listFiles(root, [''], '.ts').flatMap(({ path }) => (path.includes('/') ? path.split('/', 1) : []));
  expect([...new Set(folders)].sort()).toEqual([...sourceFolders].sort());
  const unnamed = readdirSync(join(root, 'src')).filter((name) => !importRuleModules.includes(name));
  expect(unnamed).toEqual([]);
});
