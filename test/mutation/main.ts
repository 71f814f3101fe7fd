// `npm run mutation -- <shard>|all|report [--fresh]`: changes the security-critical modules one expression at a time
// with Stryker, runs the tests of the shard (shards.ts) against each change, stores the result in test/mutation/results
// and writes docs/mutation.md. Results of unchanged code and tests are reused, except survivors; `--fresh` reuses
// nothing.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mutationPage, readResults } from './page.ts';
import { type MutationReport, summarize, withoutSurvivors } from './results.ts';
import type { Shard } from './shards/shard.ts';
import { shards } from './shards.ts';

const root = join(import.meta.dirname, '../..');
/** A folder that Stryker does not copy into its sandbox. */
const cache = join(root, 'node_modules/.cache/mutation');

/** Returns Stryker's configuration (https://stryker-mutator.io/docs/stryker-js/configuration). */
function strykerOptions(name: string, shard: Shard): object {
  return {
    mutate: shard.modules,
    testRunner: 'vitest',
    vitest: { configFile: 'vitest.mutation.config.ts', related: false },
    plugins: ['@stryker-mutator/vitest-runner', './test/mutation/ignored-texts.ts'],
    ignorers: ['texts'],
    coverageAnalysis: 'perTest',
    concurrency: 2,
    // The timeouts are long, because a busy machine must not make a slow run look like an endless loop.
    timeoutMS: 20_000,
    timeoutFactor: 4,
    incremental: true,
    incrementalFile: join(cache, `${name}.json`),
    reporters: ['progress-append-only', 'clear-text', 'json'],
    clearTextReporter: { allowColor: false, reportTests: false, reportScoreTable: false, logTests: false },
    jsonReporter: { fileName: join(cache, `${name}-report.json`) },
    ignorePatterns: ['web/dist', 'release', 'coverage', '.formgate', 'test/mutation/results'],
    disableTypeChecks: false,
    // This file must not exist: Stryker would rewrite an existing file with functions that TypeScript 7 no longer has.
    // No test needs a tsconfig file.
    tsconfigFile: 'none.json',
  };
}

async function runShard(name: string, shard: Shard, isFresh: boolean): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const incremental = join(cache, `${name}.json`);
  if (isFresh) rmSync(incremental, { force: true });
  // Remove the survivors from the stored report. Otherwise, Stryker would not repeat the tests for a survivor that has
  // no per-test coverage, even if a new test kills this survivor.
  if (existsSync(incremental)) writeFileSync(incremental, JSON.stringify(withoutSurvivors(readReport(incremental))));
  const configuration = join(cache, `${name}.config.json`);
  writeFileSync(configuration, JSON.stringify(strykerOptions(name, shard)));
  const mutated = commit();
  const code = await runStryker(configuration, shard);
  if (code !== 0) throw new Error(`stryker ended with code ${code} in shard ${name}`);
  const summary = summarize(name, readReport(join(cache, `${name}-report.json`)), {
    date: new Date().toISOString().slice(0, 10),
    commit: mutated,
  });
  writeFileSync(join(import.meta.dirname, 'results', `${name}.json`), `${JSON.stringify(summary, null, 2)}\n`);
}

function runStryker(configuration: string, shard: Shard): Promise<number | null> {
  const stryker = join(root, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const child = spawn(process.execPath, [stryker, 'run', configuration], {
    cwd: root,
    env: {
      ...process.env,
      FORMGATE_MUTATION_TESTS: shard.tests.join(','),
      FORMGATE_MUTATION_SETUP: shard.needsPostgres ? 'test/support/global-setup.ts' : '',
    },
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
  return new Promise((done, fail) => child.on('error', fail).on('exit', done));
}

function readReport(file: string): MutationReport {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** Returns the short hash of the commit whose code is mutated, and `+` if files in src have uncommitted changes. */
function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  return git('rev-parse', '--short=10', 'HEAD') + (git('status', '--porcelain', 'src') === '' ? '' : '+');
}

const [wanted = '', ...flags] = process.argv.slice(2);
const names = wanted === 'all' ? Object.keys(shards) : wanted === 'report' ? [] : wanted.split(',');
if (names.some((name) => !(name in shards)) || flags.some((flag) => flag !== '--fresh')) {
  process.stderr.write(
    `usage: npm run mutation -- all|report|<shard>[,<shard>] [--fresh]\nshards: ${Object.keys(shards).join(', ')}\n`,
  );
  process.exit(2);
}
for (const name of names) await runShard(name, shards[name] as Shard, flags.includes('--fresh'));
writeFileSync(join(root, 'docs/mutation.md'), mutationPage(readResults()));
