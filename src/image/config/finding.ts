// Defines the findings of the command `config`, prints them, and computes the exit code. A finding never contains the
// value of a setting.

/**
 * How serious a finding is:
 * - `error`: the value of a setting is invalid, or the response of a dependency shows that the setting is wrong
 * - `unreachable`: a dependency gave no usable response in time, so the setting may be right or wrong
 * - `warning`: the process starts, but an operator should look at the setting
 */
export type Severity = 'error' | 'unreachable' | 'warning';

export interface Finding {
  severity: Severity;
  /** Name of the setting to check or correct, such as `LOCK_AFTER`. */
  name: string;
  problem: string;
}

export interface Report {
  process: string;
  /** The checks that ran: `settings`, and the names of the dependencies. */
  checked: string[];
  findings: Finding[];
}

/** Returns 1 if a setting is wrong, otherwise 3 if a dependency gave no usable response in time, otherwise 0. */
export function exitCodeOf(reports: readonly Report[]): number {
  const severities = reports.flatMap(({ findings }) => findings.map(({ severity }) => severity));
  if (severities.includes('error')) return 1;
  return severities.includes('unreachable') ? 3 : 0;
}

export function printText(reports: readonly Report[]): string {
  return reports
    .flatMap(({ process, checked, findings }) => [
      `${process}: ${summary(findings)} (checked: ${checked.join(', ')})`,
      ...findings.map(({ severity, name, problem }) => `  ${severity}: ${name}: ${problem}`),
    ])
    .join('\n');
}

export function printJson(reports: readonly Report[]): string {
  return JSON.stringify({ ok: exitCodeOf(reports) === 0, processes: reports });
}

function summary(findings: readonly Finding[]): string {
  const problems = findings.filter(({ severity }) => severity !== 'warning').length;
  if (problems === 0) return 'no problems';
  return problems === 1 ? '1 problem' : `${problems} problems`;
}
