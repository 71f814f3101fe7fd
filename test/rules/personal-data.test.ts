// Tests that docs/personal-data.md lists every table of the databases, and when the reconciler deletes rows.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { periodOf, purges } from '../../src/forms/expiry/purge-store.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/personal-data.md'), 'utf8');

/** Returns the rows of the table below a heading: the names in the first cell, and the last cell. */
function rowsBelow(heading: string): { names: string[]; deleted: string }[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((line) => {
    const cells = line.split('|').slice(1, -1);
    return {
      names: [...(cells[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
      deleted: cells.at(-1) ?? '',
    };
  });
}

/** Returns the names of the tables that the migrations in a folder create. */
function tablesOf(folder: string): string[] {
  const path = join(root, folder);
  const files = readdirSync(path).filter((name) => name.endsWith('.sql'));
  const sql = files.map((name) => readFileSync(join(path, name), 'utf8')).join('\n');
  return [...sql.matchAll(/^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/gm)].map(([, name = '']) => name);
}

test.each([
  ['The form service’s database', 'src/forms/migrations'],
  ['The token handler’s database', 'src/token-handler/migrations'],
  ['The platform server’s database', 'src/platform-server/migrations'],
])('%s: the page lists every table', (heading, folder) => {
  const tables = tablesOf(folder);
  expect(tables.length).toBeGreaterThan(5);
  const listed = rowsBelow(heading.replace('’', "'")).flatMap(({ names }) => names);
  expect(listed.sort()).toEqual(tables.sort());
});

test('the page gives the period after which the reconciler deletes the rows of each table', () => {
  const rows = rowsBelow("The form service's database");
  for (const table of purges) {
    const hours = periodOf(table) / 3_600_000;
    const [count, unit] = hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour'];
    const { deleted } = rows.find(({ names }) => names.includes(table)) ?? {};
    expect(deleted, table).toMatch(new RegExp(`\\b${count} ${unit}`));
  }
});
