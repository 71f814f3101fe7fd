// Tests that docs/routes.md shows the route tables of all processes, and that every route has a guard that says who may
// call it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isGuarded } from '../../src/service/http/http-app.ts';
import { routedProcesses } from './route-tables.ts';
import { guardMeanings, guardNames, routesReference } from './routes-reference.ts';

const root = join(import.meta.dirname, '../..');

test('every route has a guard that says who may call it', () => {
  for (const { title, routes } of routedProcesses) {
    expect(routes.length).toBeGreaterThan(10);
    const open = routes.filter((route) => !isGuarded(route));
    expect(open.map(({ method, path }) => `${title}: ${method} ${path}`)).toEqual([]);
  }
});

test('docs/routes.md agrees with the route tables (npm run docs updates it)', () => {
  expect(readFileSync(join(root, 'docs/routes.md'), 'utf8')).toBe(routesReference(routedProcesses));
});

test('docs/routes.md explains exactly the guards in use', () => {
  const used = guardNames(routedProcesses.flatMap(({ routes }) => routes));
  expect(used.sort()).toEqual(Object.keys(guardMeanings).sort());
});
