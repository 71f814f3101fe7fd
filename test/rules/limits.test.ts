// Tests that the settings and metrics in docs/limits.md exist, and that the page names every setting that limits a
// resource.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { listFiles } from './source-files.ts';

const project = join(import.meta.dirname, '../..');

let rows: { resource: string; setting: string; metric: string; cells: string[] }[];
let source: string;
let configuration: string;
beforeAll(async () => {
  const page = await readFile(join(project, 'docs/limits.md'), 'utf8');
  rows = page
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| resource') && !line.startsWith('| ---'))
    .map((line) => {
      const cells = line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim());
      return { resource: cells[0] ?? '', setting: cells[5] ?? '', metric: cells[6] ?? '', cells };
    });
  configuration = await readFile(join(project, 'docs/configuration.md'), 'utf8');
  source = listFiles(project, ['src', 'reconciler'], '.ts')
    .filter(({ path }) => !path.includes('.test.'))
    .map(({ text }) => text)
    .join('\n');
});

const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');

describe('docs/limits.md', () => {
  it('lists for each resource the limits, what happens beyond them, the setting and the metric', () => {
    expect(rows.length).toBeGreaterThan(30);
    for (const { resource, cells } of rows) {
      expect(cells, resource).toHaveLength(7);
      for (const cell of cells) expect(cell, resource).not.toBe('');
    }
  });

  it('names settings that exist', () => {
    for (const { resource, setting } of rows)
      for (const name of quoted(setting)) expect(configuration, resource).toContain(`\`${name}\``);
  });

  it('names metrics that exist', () => {
    for (const { resource, metric } of rows)
      for (const name of quoted(metric)) expect(source.includes(name), `${resource}: ${name}`).toBe(true);
  });

  it('names every setting that limits a resource', () => {
    const named = new Set(rows.flatMap(({ setting }) => quoted(setting)));
    const bounds = [
      ...configuration.matchAll(
        /^\| `([A-Z_]*(?:LIMIT|SHARE|CONNECTIONS|STREAMS|POOL_SIZE|CONCURRENCY|RATE|PER_[A-Z]+|TOTAL))` \|/gm,
      ),
    ];
    expect(bounds.length).toBeGreaterThan(8);
    for (const [, name = ''] of bounds) expect(named, `docs/limits.md lacks ${name}`).toContain(name);
  });
});
