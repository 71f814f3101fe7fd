// Formats the summary line of a run, and determines the exit code. All functions are pure.
import type { RunResult } from './run.ts';

/** Returns the exit code: 1 if the run failed, 3 if items were quarantined (0 with `acceptQuarantine`), otherwise 0. */
export function exitCodeOf(
  { outcome, quarantined }: Pick<RunResult, 'outcome' | 'quarantined'>,
  { acceptQuarantine }: { acceptQuarantine: boolean } = { acceptQuarantine: false },
): 0 | 1 | 3 {
  if (outcome === 'failed') return 1;
  return quarantined > 0 && !acceptQuarantine ? 3 : 0;
}

const words: [name: string, text: string][] = [
  ['warned', 'warned'],
  ['locked', 'locked'],
  ['deleted', 'deleted'],
  ['deletedNotNotified', 'of these without a notice'],
  ['waiting', 'waiting for their notice'],
  ['skippedDefinitions', 'definitions skipped'],
  ['purged', 'rows purged'],
  ['subscribersRemoved', 'duplicate subscribers removed'],
  ['retried', 'quarantined items retried'],
  ['quarantined', 'items quarantined'],
];
const always = ['warned', 'locked', 'deleted'];

/**
 * Formats a result, such as `Succeeded in 12.3 s: 120 warned, 3,000 locked, 250 deleted; clients: 3 unchanged,
 * Ready=True 3.`
 */
export function summarise(result: RunResult): string {
  const { outcome, milliseconds, failures, dryRun } = result;
  if (outcome === 'skipped') return 'Skipped: another run is active.';
  const verb = `${outcome[0]?.toUpperCase()}${outcome.slice(1)}`;
  const clauses = [expiryClause(result), clientsClause(result)].filter((clause) => clause !== '');
  const said = clauses.length > 0 ? `: ${clauses.join('; ')}` : '';
  const why = failures.length > 0 ? ` Failed: ${failures.join('; ')}.` : '';
  return `${dryRun ? 'Dry run, nothing was changed. ' : ''}${verb} in ${(milliseconds / 1_000).toFixed(1)} s${said}.${why}`;
}

function expiryClause({ counts }: RunResult): string {
  return words
    .filter(([name]) => name in counts && (always.includes(name) || (counts[name] ?? 0) > 0))
    .map(([name, text]) => `${number(counts[name] ?? 0)} ${text}`)
    .join(', ');
}

function clientsClause({ counts, conditions }: RunResult): string {
  const prefix = 'clients.';
  const said = Object.entries(counts)
    .filter(([name, count]) => name.startsWith(prefix) && count > 0)
    .map(([name, count]) => `${number(count)} ${name.slice(prefix.length)}`);
  const states = Object.entries(conditions ?? {}).map(([name, count]) => `${name} ${number(count)}`);
  const all = [...said, ...states];
  return all.length > 0 ? `clients: ${all.join(', ')}` : '';
}

function number(value: number): string {
  return value.toLocaleString('en');
}
