// The chart's rules with all durations divided, so that an incident of an hour takes a minute.
import { ruleSettings, ruleText } from '../monitoring/rules.ts';

/** The number by which durations are divided: one second of an incident stands for one minute in the rules. */
export const factor = 60;

const units = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Returns the rules of the release `formgate` in the namespace `forms`, evaluated each second. */
export function scaledRules(): string {
  const { outboxSeconds = 0, jobsSeconds = 0, reconcilerSeconds = 0 } = ruleSettings.thresholds;
  const text = ruleText({
    evaluationSeconds: factor,
    outboxSeconds: outboxSeconds / factor,
    jobsSeconds: jobsSeconds / factor,
    reconcilerSeconds: reconcilerSeconds / factor,
    // The default, a day, would become 24 minutes, which is longer than an incident. A minute is enough, because the
    // drafts of the incidents are days overdue.
    overdueSeconds: 60,
  });
  const scaled = text
    .replace(/(\[|offset )(\d+)([smhd])/g, (_all, before, count, unit) => `${before}${shorter(count, unit)}`)
    .replace(
      /^(\s+(?:for|interval): )(\d+)([smhd])$/gm,
      (_all, before, count, unit) => `${before}${shorter(count, unit)}`,
    );
  // The rules multiply a sum of per-second rates by the seconds between two evaluations. Here, evaluations are 1 s
  // apart.
  return scaled.replaceAll(`]) * ${factor} >=`, ']) * 1 >=');
}

function shorter(count: string, unit: string): string {
  return `${Math.max(1, Math.round((Number(count) * units[unit as keyof typeof units]) / factor))}s`;
}
