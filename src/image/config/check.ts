// Checks the configuration of processes: first all settings, and then each dependency whose settings are valid.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspectSettings, type ProcessSettings } from '../../service/operations/config.ts';
import { doubtfulVariables } from '../../service/operations/variable-warnings.ts';
import { within } from '../../service/time-limit.ts';
import type { CheckCommand, ProcessName } from './arguments.ts';
import type { Finding, Report } from './finding.ts';
import { checkedProcesses, type DependencyCheck } from './processes.ts';

type Limits = Pick<CheckCommand, 'timeLimit'> & { env: NodeJS.ProcessEnv };
type Options = Pick<CheckCommand, 'processes' | 'skipped'> & Limits;

export async function checkConfiguration(options: Options): Promise<Report[]> {
  const [first, ...others] = await Promise.all(options.processes.map((name) => checkProcess(name, options)));
  if (!first) return [];
  const all = options.processes.map((name) => checkedProcesses[name].settings);
  return [{ ...first, findings: [...first.findings, ...warnings(all, options.env)] }, ...others];
}

async function checkProcess(name: ProcessName, options: Options): Promise<Report> {
  const { settings, dependencies } = checkedProcesses[name];
  const { values, invalid, problems } = inspectSettings(settings, options.env);
  const possible = dependencies.filter(
    (check) => !options.skipped.includes(check.dependency) && !check.names.some((setting) => invalid.has(setting)),
  );
  const found = await Promise.all(possible.map((check) => findProblems(check, values, options)));
  return {
    process: name,
    checked: ['settings', ...new Set(possible.map(({ dependency }) => dependency))],
    findings: [...problems.map((problem): Finding => ({ severity: 'error', ...problem })), ...found.flat()],
  };
}

/**
 * Returns the findings of one check. An exception of the check becomes a finding. It omits the exception's message,
 * which may contain the value of a setting.
 */
export async function findProblems(check: DependencyCheck, values: object, options: Limits): Promise<Finding[]> {
  try {
    return await persist(check, values, options);
  } catch (error) {
    const type = error instanceof Error ? error.name : typeof error;
    return [{ severity: 'error', name: nameOf(check), problem: `the check of ${check.dependency} failed: ${type}` }];
  }
}

/**
 * Repeats the check of one dependency while a finding is `unreachable`, until `timeLimit` has passed. Other findings,
 * such as a wrong setting, cause no repetition. If the time runs out during a repetition, returns the findings of the
 * previous attempt, because they name the cause.
 */
async function persist(check: DependencyCheck, values: object, { env, timeLimit }: Limits): Promise<Finding[]> {
  const deadline = performance.now() + timeLimit;
  let findings = late(check);
  for (;;) {
    const left = Math.max(1, deadline - performance.now());
    findings = await within(check.run(values as never, { env, timeLimit: left }), left, findings);
    const isOver = performance.now() + pause >= deadline;
    if (isOver || !findings.some(({ severity }) => severity === 'unreachable')) return findings;
    await sleep(pause);
  }
}

/** Milliseconds between two attempts of a check. */
const pause = 1_000;

function late(check: DependencyCheck): Finding[] {
  return [{ severity: 'unreachable', name: nameOf(check), problem: `${check.dependency} did not respond in time` }];
}

/** Returns the setting under which a problem of the whole check is reported. */
function nameOf({ dependency, names: [name = dependency] }: DependencyCheck): string {
  return name;
}

function warnings(settings: readonly ProcessSettings[], env: NodeJS.ProcessEnv): Finding[] {
  return doubtfulVariables(settings, env).map((found) => ({
    severity: 'warning',
    name: found.variable,
    problem:
      'use' in found
        ? `was renamed to ${found.use}; the next version ignores the old name`
        : `is unknown and ignored; ${found.meant} may be meant`,
  }));
}
