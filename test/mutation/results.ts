// Reads Stryker's report (https://github.com/stryker-mutator/mutation-testing-elements, schema 2) and reduces it to the
// counts of each module and its survivors.
import { codeHash } from './code-hash.ts';

export interface MutationReport {
  files: Record<string, { source: string; mutants: Mutant[] }>;
}

export interface Mutant {
  id: string;
  mutatorName: string;
  replacement?: string;
  status: 'Killed' | 'Survived' | 'NoCoverage' | 'Timeout' | 'CompileError' | 'RuntimeError' | 'Ignored' | 'Pending';
  location: { start: Position; end: Position };
}

interface Position {
  line: number;
  column: number;
}

/** A change of the code that no test noticed. */
export interface Survivor {
  /** The first line of the changed code, without indentation. */
  text: string;
  /** The changed code, which may be a part of the line or extend beyond it. */
  original: string;
  replacement: string;
  mutator: string;
  /** True if no test runs the code. */
  isUncovered: boolean;
}

export interface ModuleResult {
  file: string;
  /** Hash of the mutated code (code-hash.ts). Absent if the mutated commit is no longer known. */
  codeSha256?: string;
  killed: number;
  timedOut: number;
  survived: number;
  uncovered: number;
  /** Number of mutants in texts that only people read. The tests are not run with these mutants. */
  ignored: number;
  /** Number of mutants that prevented the test file from loading. They do not count as killed or as survivors. */
  unloadable: number;
  survivors: Survivor[];
}

export interface ShardResult {
  shard: string;
  /** Day of the run, YYYY-MM-DD. */
  date: string;
  /** The mutated commit. */
  commit: string;
  modules: ModuleResult[];
}

export function summarize(
  shard: string,
  { files }: MutationReport,
  { date, commit }: Pick<ShardResult, 'date' | 'commit'>,
): ShardResult {
  const modules = Object.entries(files).map(([file, { source, mutants }]) => {
    const count = (...statuses: Mutant['status'][]) => mutants.filter(({ status }) => statuses.includes(status)).length;
    return {
      file,
      codeSha256: codeHash(source),
      killed: count('Killed'),
      timedOut: count('Timeout'),
      survived: count('Survived'),
      uncovered: count('NoCoverage'),
      ignored: count('Ignored'),
      unloadable: count('CompileError', 'RuntimeError', 'Pending'),
      survivors: mutants.filter(isSurvivor).map((mutant) => survivor(source, mutant)),
    };
  });
  return { shard, date, commit, modules: modules.sort((one, other) => one.file.localeCompare(other.file)) };
}

/** Removes the survivors, so that Stryker runs them again. */
export function withoutSurvivors(report: MutationReport): MutationReport {
  const files = Object.entries(report.files).map(([file, content]) => [
    file,
    { ...content, mutants: content.mutants.filter((mutant) => !isSurvivor(mutant)) },
  ]);
  return { ...report, files: Object.fromEntries(files) };
}

const isSurvivor = ({ status }: Mutant) => status === 'Survived' || status === 'NoCoverage';

function survivor(
  source: string,
  { location: { start, end }, replacement = '', mutatorName, status }: Mutant,
): Survivor {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const text = lines[0] ?? '';
  // Cuts the last line first, because it may also be the first line.
  lines[lines.length - 1] = (lines.at(-1) ?? '').slice(0, end.column - 1);
  lines[0] = (lines[0] ?? '').slice(start.column - 1);
  return {
    text: text.trim(),
    original: oneLine(lines.join('\n')),
    replacement: oneLine(replacement),
    mutator: mutatorName,
    isUncovered: status === 'NoCoverage',
  };
}

function oneLine(code: string): string {
  return code.replace(/\s+/g, ' ').trim();
}
