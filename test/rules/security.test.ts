// The tables of docs/security.md: every row has its cells and a known result, and every rule that it names exists.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rulesOf } from './specification.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const ids = new Set(
  ['docs/specification.md', 'docs/specification-token-handler.md'].flatMap((page) =>
    rulesOf(read(page)).map(({ id }) => id),
  ),
);

/** Returns the rows below the heading, each as its cells. */
function tableBelow(heading: string): string[][] {
  const section =
    read('docs/security.md')
      .split(/^## /m)
      .find((text) => text.startsWith(heading)) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** Names of rules in a text. */
const named = (text: string) => text.match(/\b(?:FS|TH|D|P)-[a-z0-9][a-z0-9-]*/g) ?? [];

test('every rule that the page names exists', () => {
  const unknown = named(read('docs/security.md')).filter((id) => !ids.has(id));
  expect(unknown).toEqual([]);
});

test('every threat has a measure, and rules that show it', () => {
  const threats = tableBelow('Threats');
  expect(threats.length).toBeGreaterThan(30);
  expect(threats.filter(([, measure = '', rules = '']) => measure === '' || named(rules).length === 0)).toEqual([]);
});

describe.each(['RFC 9700', 'OAuth 2.0 for Browser-Based Applications'])('the table of %s', (heading) => {
  const rows = tableBelow(heading);

  test('says of every requirement whether it is met', () => {
    expect(rows.length).toBeGreaterThan(15);
    const results = rows.map((cells) => cells.at(-2));
    expect(results.filter((result) => !['met', 'partly', 'not met', 'operator'].includes(result ?? ''))).toEqual([]);
  });

  test('names rules for what is met, and a reason for what is not', () => {
    const faulty = rows.filter((cells) => {
      const [result = '', why = ''] = cells.slice(-2);
      return result === 'met' ? named(why).length === 0 : why.length < 30;
    });
    expect(faulty).toEqual([]);
  });
});
