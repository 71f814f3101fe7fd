// Writes the report of `npm run bench -- all` to docs/benchmarks: one page and one JSON file for each run, and the
// index of all runs. The report describes the machine without its name and paths.
import { execFileSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { type Figure, tableOf, verdictOf } from './figures.ts';

export interface Section {
  /** Name of the bench, as in `npm run bench -- NAME`. */
  bench: string;
  figures: Figure[];
  /** The error that stopped the bench, if it has no figures. */
  failure?: string;
}

export interface BenchReport {
  /** Time of the start, ISO 8601 in UTC. */
  started: string;
  version: string;
  /** Short hash of the commit. Ends in `+` if the working tree has uncommitted changes. */
  commit: string;
  node: string;
  machine: { processors: number; model: string; memoryGib: number; loadBefore: number; loadAfter: number };
  sections: Section[];
}

const project = join(import.meta.dirname, '../..');
export const historyFolder = join(project, 'docs/benchmarks');

/** One-minute load average: the number of processes that run or wait for a processor. */
export const currentLoad = (): number => Math.round((loadavg()[0] ?? 0) * 10) / 10;

export async function describeRun(started: Date, loadBefore: number, sections: Section[]): Promise<BenchReport> {
  const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as { version: string };
  const git = (...args: string[]) => execFileSync('git', args, { cwd: project, encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
  const processors = cpus();
  return {
    started: started.toISOString(),
    version,
    commit: `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`,
    node: process.versions.node,
    machine: {
      processors: processors.length,
      model: processors[0]?.model.trim() ?? 'unknown',
      memoryGib: Math.round(totalmem() / 2 ** 30),
      loadBefore,
      loadAfter: currentLoad(),
    },
    sections,
  };
}

/** Writes the page, the JSON file and the index into `folder`. Returns the name of both files without extension. */
export async function writeReport(report: BenchReport, folder = historyFolder): Promise<string> {
  const name = `${report.started.slice(0, 16).replace(':', '')}-${report.version}`;
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(join(folder, `${name}.md`), pageOf(report));
  await writeFile(join(folder, 'README.md'), await indexOf(folder));
  return name;
}

export function pageOf({ started, version, commit, node, machine, sections }: BenchReport): string {
  const { processors, model, memoryGib, loadBefore, loadAfter } = machine;
  const head = `# Benchmarks of ${started.slice(0, 10)}, version ${version}

\`npm run bench -- all\` at commit ${commit}, Node ${node}, ${processors} processors (${model}), ${memoryGib} GiB. The load average
was ${loadBefore} before the run and ${loadAfter} after it; above ${processors}, other programs competed for the processors. Values in
parentheses are 95 % confidence intervals. \`not shown\` means that the goal lies within the interval.
`;
  return `${[head, ...sections.map(({ bench, figures, failure }) => `## ${bench}\n\n${failure ?? tableOf(figures)}\n`)].join('\n')}`;
}

async function indexOf(folder: string): Promise<string> {
  const names = (await readdir(folder))
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .toReversed();
  const rows: string[] = [];
  for (const file of names) {
    const report = JSON.parse(await readFile(join(folder, file), 'utf8')) as BenchReport;
    const verdicts = report.sections.flatMap(({ figures }) => figures.map(verdictOf));
    const count = (verdict: string) => verdicts.filter((one) => one === verdict).length;
    const name = file.slice(0, -'.json'.length);
    const load = `${report.machine.loadBefore} to ${report.machine.loadAfter}`;
    rows.push(
      `| [${name}](${name}.md) | ${report.commit} | ${load} | ${count('reached')} | ${count('not shown')} | ${count('missed')} |`,
    );
  }
  return `# Runs of all benchmarks

\`npm run bench -- all\` adds a run to this folder: a page, and the same figures as JSON. [../benchmarks.md](../benchmarks.md)
explains what is measured, and [profiles.md](profiles.md) what the profiles led to.

| run | commit | load average | goals reached | not shown | missed |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`;
}
