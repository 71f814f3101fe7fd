// Tests that the linter, with the settings of this repository, rejects code that breaks its rules. Each fixture is
// named after the Biome rule that must report it. All fixtures are linted as files of src/service.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const fixtures = join(root, 'test/fixtures/lint-rules');
const rules = readdirSync(fixtures).map((name) => name.replace('.txt', ''));
const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

let folder: string;
let found: { rule: string; file: string }[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'formgate-lint-'));
  const { vcs: _, $schema: __, ...settings } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'));
  writeFileSync(join(folder, 'biome.json'), JSON.stringify(settings));
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  mkdirSync(join(folder, 'src/service'), { recursive: true });
  for (const rule of rules) cpSync(join(fixtures, `${rule}.txt`), join(folder, `src/service/${kebab(rule)}.ts`));
  writeFileSync(join(folder, 'src/service/bearerGuards.ts'), 'export const x = 1;\n');
  writeFileSync(
    join(folder, 'src/service/fine.ts'),
    "import { join } from 'node:path';\n\nexport const x = join('a');\n",
  );
  const options = { cwd: folder, encoding: 'utf8' } as const;
  const { stdout } = spawnSync(
    join(root, 'node_modules/.bin/biome'),
    ['lint', '--reporter=github', '--max-diagnostics=none'],
    options,
  );
  found = [...stdout.matchAll(/^::error title=lint\/\w+\/(\w+),file=[^,]*?\/?([\w-]+\.ts),/gm)].map(
    ([, rule = '', file = '']) => ({ rule, file }),
  );
});

afterAll(() => rmSync(folder, { recursive: true }));

test.each(rules)('the linter rejects a file that breaks %s', (rule) => {
  expect(found).toContainEqual({ rule, file: `${kebab(rule)}.ts` });
});

test('the linter rejects a file name that is not in kebab-case', () => {
  expect(found).toContainEqual({ rule: 'useFilenamingConvention', file: 'bearerGuards.ts' });
});

test('the linter accepts a file that breaks no rule', () => {
  expect(found.filter(({ file }) => file === 'fine.ts')).toEqual([]);
});
