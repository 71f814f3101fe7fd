// Tests the reports of `npm run bench -- all`, and the index of all runs.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type BenchReport, writeReport } from './bench-report.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-bench-report-'));
});
afterEach(() => rm(folder, { recursive: true }));

const report = (started: string, high: number): BenchReport => ({
  ...{ started, version: '1.2.3', commit: 'abc1234', node: '26.10.0' },
  machine: { processors: 2, model: 'A model', memoryGib: 24, loadBefore: 0.5, loadAfter: 2.5 },
  sections: [
    { bench: 'forms', figures: [], failure: 'Not measured: Error: 3 rejected requests' },
    { bench: 'proxy', figures: [{ name: 'a ÷ b', value: 0.9, low: 0.86, high, least: 0.85, digits: 2 }] },
  ],
});

it('adds a page and a JSON file for each run, and lists the latest run first', async () => {
  await writeReport(report('2026-01-02T03:04:05.678Z', 0.94), folder);
  await writeReport(report('2026-02-03T04:05:06.789Z', 0.95), folder);
  expect((await readdir(folder)).toSorted()).toEqual([
    '2026-01-02T0304-1.2.3.json',
    '2026-01-02T0304-1.2.3.md',
    '2026-02-03T0405-1.2.3.json',
    '2026-02-03T0405-1.2.3.md',
    'README.md',
  ]);
  const index = await readFile(join(folder, 'README.md'), 'utf8');
  const row = (name: string) => `| [${name}](${name}.md) | abc1234 | 0.5 to 2.5 | 1 | 0 | 0 |`;
  const [later, earlier] = [row('2026-02-03T0405-1.2.3'), row('2026-01-02T0304-1.2.3')];
  expect(index).toContain(`${later}\n${earlier}\n`);
  const page = await readFile(join(folder, '2026-02-03T0405-1.2.3.md'), 'utf8');
  expect(page).toContain('## forms\n\nNot measured: Error: 3 rejected requests\n');
  expect(page).toContain('| a ÷ b | 0.90 (0.86 to 0.95) | at least 0.85 | reached |');
});
