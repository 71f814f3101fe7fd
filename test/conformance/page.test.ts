// Tests that docs/conformance.md marks a module as passed exactly if the module has a test, and gives a reason for
// every other module.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { separator, testTitles } from '../rules/test-titles.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/conformance.md'), 'utf8');
const source = readFileSync(join(import.meta.dirname, 'relying-party.test.ts'), 'utf8');

/** The rows of the page's tables, with the heading above them. */
const rows = page.split(/^## /m).flatMap((section) => {
  const plan = /^`(.*)`$/m.exec(section)?.[1] ?? '';
  const cells = section.matchAll(/^\| `([^`|]+)` \| ([^|]*) \| ([^|]+) \|$/gm);
  return [...cells].map(([, module = '', result = '', text = '']) => ({
    name: plan + separator + module,
    result,
    text,
  }));
});

test('the page marks the modules as passed that have a test, and no others', () => {
  const passed = rows.filter(({ result }) => result === 'passed').map(({ name }) => name);
  expect(passed).toEqual(testTitles(source));
});

test('the page has the modules of all plans once, with a result', () => {
  expect(rows).toHaveLength(page.match(/^\| `/gm)?.length ?? 0);
  expect(new Set(rows.map(({ name }) => name)).size).toBe(14 + 6 + 3 + 8 + 4);
  for (const { name, result, text } of rows) {
    expect(['passed', 'not applicable'], name).toContain(result);
    expect(text.length, name).toBeGreaterThan(10);
  }
});
