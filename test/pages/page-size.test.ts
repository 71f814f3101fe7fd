// Measures how many bytes a browser loads first, and checks that no page contains a schema compiler.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { buildPages } from '../../web/build.ts';

const dist = join(import.meta.dirname, '../../web/dist/apply');
beforeAll(() => buildPages());

it('the applicant’s page loads at most 70 KB of compressed script, and none of it compiles code', () => {
  const html = readFileSync(join(dist, 'index.html'), 'utf8');
  const first = [...html.matchAll(/(?:src|href)="\/apply\/(assets\/[^"]+\.js)"/g)].map(([, file = '']) => file);
  expect(first.length).toBeGreaterThan(0);
  const bytes = first.reduce((sum, file) => sum + statSync(join(dist, `${file}.gz`)).size, 0);
  expect(bytes).toBeLessThanOrEqual(70_000);
  const scripts = readdirSync(join(dist, 'assets')).filter((name) => name.endsWith('.js'));
  for (const name of scripts) {
    const script = readFileSync(join(dist, 'assets', name), 'utf8');
    expect(script.match(/\beval\(|new Function\(|\bajv\b/g) ?? []).toEqual([]);
    expect(script.match(/localStorage|sessionStorage|indexedDB/g) ?? []).toEqual([]);
  }
});

it('the pages are built for production, also by tests: without paths of the machine that built them', () => {
  const folder = join(dist, '..');
  const scripts = readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith('.js'));
  expect(scripts.length).toBeGreaterThanOrEqual(4);
  for (const name of scripts)
    expect(readFileSync(join(folder, String(name)), 'utf8'), String(name)).not.toMatch(
      /lineNumber:|web\/(?:apply|console)\//,
    );
});
