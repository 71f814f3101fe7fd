// Checks the JSON of every dashboard against Grafana's types. The TypeScript compiler reports a member that Grafana
// does not know, a missing member, and a value that is not allowed.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { dashboardFolder, dashboardNames } from './dashboard-files.ts';

const root = join(import.meta.dirname, '../..');
/** A folder inside the project, so that the compiled files can import the project's packages. */
const cache = join(root, 'node_modules/.cache');
const options = ['--noEmit', '--strict', '--skipLibCheck', '--allowImportingTsExtensions', '--module', 'nodenext'];

/** Checks the dashboards with the TypeScript compiler, and returns its messages. */
async function errorsIn(dashboards: Record<string, string>): Promise<string> {
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'dashboards-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const types = JSON.stringify(join(import.meta.dirname, 'dashboard-types.ts'));
  const files = Object.entries(dashboards).map(([name, json]) => [
    join(folder, `${name.replace(/\W/g, '-')}.ts`),
    json,
  ]);
  for (const [file = '', json] of files)
    await writeFile(
      file,
      `import type { DashboardJson } from ${types};\nexport const dashboard: DashboardJson = ${json};\n`,
    );
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const args = [compiler, '--ignoreConfig', ...options, ...files.map(([file = '']) => file)];
  return new Promise(
    (done) => void execFile(process.execPath, args, (_error, stdout, stderr) => done(stdout + stderr)),
  );
}

const read = (name: string) => readFile(join(dashboardFolder, name), 'utf8');

it('every dashboard satisfies Grafana’s types', async () => {
  const dashboards = await Promise.all(dashboardNames().map(async (name) => [name, await read(name)]));
  expect(dashboards).toHaveLength(4);
  expect(await errorsIn(Object.fromEntries(dashboards))).toBe('');
});

it.each([
  ['an unknown member of the dashboard', '"schemaVersion":', '"schema":'],
  ['an unknown option of a panel', '"graphMode":', '"grafMode":'],
  ['an unknown setting of a series', '"lineWidth":', '"lineWitdh":'],
  ['a value that is none of those allowed', '"colorMode": "background"', '"colorMode": "backgrund"'],
  ['an unknown type of panel', '"type": "timeseries"', '"type": "graph"'],
  ['an unknown member of a query', '"legendFormat":', '"legend":'],
  ['a text where a number belongs', '"schemaVersion": 42', '"schemaVersion": "42"'],
])('%s is found', async (_what, right, wrong) => {
  const json = await read('overview.json');
  expect(json).toContain(right);
  expect(await errorsIn({ 'wrong.json': json.replace(right, wrong) })).toMatch(/error TS\d+/);
});
