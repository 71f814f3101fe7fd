// Renders docs/mutation.md from the results of the shards. Modules without a result are listed as not run.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isCurrent } from './code-hash.ts';
import { criticalModules } from './critical-modules.ts';
import type { Explanation } from './explanations/explanation.ts';
import { explanations } from './explanations.ts';
import type { ModuleResult, ShardResult, Survivor } from './results.ts';

const results = join(import.meta.dirname, 'results');

/** Returns the stored results of all shards that have run. */
export function readResults(): ShardResult[] {
  const files = readdirSync(results).filter((file) => file.endsWith('.json'));
  return files.sort().map((file) => JSON.parse(readFileSync(join(results, file), 'utf8')));
}

/** Finds the explanation of a survivor; undefined if there is none. */
export function explanationOf(file: string, survivor: Survivor): Explanation | undefined {
  return explanations.find(
    (each) =>
      each.file === file &&
      each.text === survivor.text &&
      each.changes.some(
        ([original, replacement]) => original === survivor.original && replacement === survivor.replacement,
      ),
  );
}

const introduction = `# Mutation tests

\`npm run mutation -- <shard>\` changes the security-critical modules, one expression at a time, with
[Stryker](https://stryker-mutator.io) and runs the tests of the shard against each change (a *mutant*). A mutant is killed
if a test fails, or if it makes the tests hang. A survivor is a change that no test of the shard noticed. Only the tests in
\`test/mutation/shards\` run, so a survivor here may be killed by another test of \`npm test\`.

The score is the share of killed mutants among all mutants that ran or that no test covers. Mutants of texts for people
(messages of errors, problems and log lines, and the documentation of routes) are not run, and mutants with which a test file
cannot be loaded do not count. SQL is mutated only as a whole: a statement is replaced by an empty text. A test that was written
after a run changes its result only with the next run. If the code of a module has changed since its run, apart from comments
and layout, its row says *changed since*, and the total leaves it out. The same applies if the commit of the run is not known.

\`npm run mutation -- report\` and \`npm run docs\` write this page from \`test/mutation/results\`.
`;

export function mutationPage(shards: ShardResult[]): string {
  const modules = shards.flatMap((shard) => shard.modules.map((module) => ({ ...module, shard })));
  const rows = modules.map(({ shard, ...module }) => row(module, shard));
  const current = modules.filter(isCurrent);
  const total = current.reduce(
    (sum, { killed, timedOut, survived, uncovered }) => ({
      killed: sum.killed + killed + timedOut,
      all: sum.all + killed + timedOut + survived + uncovered,
    }),
    { killed: 0, all: 0 },
  );
  const notRun = criticalModules().filter((file) => !modules.some((module) => module.file === file));
  return [
    introduction,
    '## Results\n',
    `In the ${current.length} modules whose code has not changed since their run, ${total.killed} of ${total.all} mutants were\n` +
      `killed (${percent(total.killed, total.all)}). ${modules.length - current.length} modules have changed since.\n`,
    '| module | mutants | killed | timed out | survived | no coverage | score | not run: texts | not loaded | shard, day, commit |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |',
    ...rows,
    '\nA `+` after a commit means that tests or code of the run were not yet committed.\n',
    '## Survivors\n',
    ...modules.filter(({ survivors }) => survivors.length > 0).map(survivorsOf),
    '## Not run\n',
    notRun.length === 0
      ? 'Every security-critical module has a result.'
      : 'These security-critical modules have no result yet:\n',
    ...notRun.map((file) => `- \`${file}\``),
    '',
  ].join('\n');
}

function row(module: ModuleResult, { shard, date, commit }: ShardResult): string {
  const { file, killed, timedOut, survived, uncovered, ignored, unloadable } = module;
  const all = killed + timedOut + survived + uncovered;
  const score = percent(killed + timedOut, all);
  const cells = [all, killed, timedOut, survived, uncovered, score, ignored, unloadable];
  const run = `${shard}, ${date}, ${commit}${isCurrent(module) ? '' : ', *changed since*'}`;
  return `| \`${file}\` | ${cells.join(' | ')} | ${run} |`;
}

function percent(part: number, all: number): string {
  return all === 0 ? '–' : `${((100 * part) / all).toFixed(1)} %`;
}

function survivorsOf({ file, survivors }: ModuleResult): string {
  const lines = survivors.map((survivor) => {
    const explanation = explanationOf(file, survivor);
    const why = explanation ? `${explanation.kind}: ${explanation.why}` : 'not explained yet';
    const change = `${code(survivor.original)} → ${code(survivor.replacement)}`;
    return `- ${change}${survivor.isUncovered ? ' (no test runs it)' : ''}: ${why}`;
  });
  return `### ${file}\n\n${[...new Set(lines)].join('\n')}\n`;
}

/** Maximum number of characters; longer code is cut. */
const longest = 110;

function code(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  const fence = cut.includes('`') ? '``' : '`';
  return text === '' ? 'nothing' : `${fence}${fence === '``' ? ` ${cut} ` : cut}${fence}`;
}
