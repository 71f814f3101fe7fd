// Tests that each code rule has a fixture that breaks it, and that the repository breaks no rule. A fixture lists the
// expected findings in expected.txt, by path and line.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { codeRuleNames, findCodeProblems } from './code-rules.ts';

const root = join(import.meta.dirname, '../..');
const fixtures = join(root, 'test/fixtures/code-rules');

test('every code rule has a fixture that breaks it', () => {
  expect(readdirSync(fixtures).sort()).toEqual([...codeRuleNames].sort());
});

test.each(codeRuleNames)('the rule %s reports exactly the places that break it', (rule) => {
  const expected = readFileSync(join(fixtures, rule, 'expected.txt'), 'utf8')
    .trim()
    .split('\n');
  const findings = findCodeProblems(join(fixtures, rule)).filter((finding) => finding.rule === rule);
  expect(findings.map(({ path, line }) => (line === undefined ? path : `${path}:${line}`)).sort()).toEqual(
    expected.sort(),
  );
});

test('no file of this repository breaks a code rule', () => {
  expect(findCodeProblems(root)).toEqual([]);
});
