// Tests the tables of docs/security.md and docs/asvs.md: every row has all its cells and a known result, and names only
// rules and files that exist.
import { existsSync, readFileSync } from 'node:fs';
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

const results = ['met', 'partly', 'not met', 'operator'];

/** Returns the rows below the heading, each as a list of its cells. */
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

/** Returns the names of the specification's rules that a text contains. */
const named = (text: string) => text.match(/\b(?:FS|TH|D|P)-[a-z0-9][a-z0-9-]*/g) ?? [];

/** Returns the paths of the files of this repository that a text names. */
const files = (text: string) =>
  [...text.matchAll(/`((?:src|docs|charts|web|reconciler)\/[^`\s]+|\.?[\w-]+\.json|\.dockerignore|Dockerfile)`/g)].map(
    ([, path = '']) => path,
  );

test.each(['docs/security.md', 'docs/asvs.md'])('every rule and file that %s names exists', (page) => {
  const text = read(page);
  expect(named(text).filter((id) => !ids.has(id))).toEqual([]);
  expect(files(text).filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('every requirement of the ASVS has a result, and a rule, a file or a reason', () => {
  const rows = read('docs/asvs.md')
    .split('\n')
    .filter((line) => /^\| \d/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  expect(rows.length).toBeGreaterThan(150);
  const faulty = rows.filter(([, words = '', result = '', answer = '']) => {
    if (words === '' || !results.includes(result)) return true;
    return result === 'met' ? named(answer).length + files(answer).length === 0 : answer.length < 20;
  });
  expect(faulty).toEqual([]);
});

test('every threat has a measure, and rules that show it', () => {
  const threats = tableBelow('Threats');
  expect(threats.length).toBeGreaterThan(30);
  expect(threats.filter(([, measure = '', rules = '']) => measure === '' || named(rules).length === 0)).toEqual([]);
});

describe.each(['RFC 9700', 'OAuth 2.0 for Browser-Based Applications', 'NIST SP 800-63B-4'])(
  'the table of %s',
  (heading) => {
    const rows = tableBelow(heading);

    test('says of every requirement whether it is met', () => {
      expect(rows.length).toBeGreaterThan(12);
      expect(rows.filter((cells) => !results.includes(cells.at(-2) ?? ''))).toEqual([]);
    });

    test('names rules for what is met, and a reason for what is not', () => {
      const faulty = rows.filter((cells) => {
        const [result = '', why = ''] = cells.slice(-2);
        return result === 'met' ? named(why).length === 0 : why.length < 30;
      });
      expect(faulty).toEqual([]);
    });
  },
);
