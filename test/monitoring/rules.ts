// The chart's rules without Helm: files/alerts.yaml with the values that templates/prometheus-rule.yaml would insert.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const chart = join(import.meta.dirname, '../../charts/formgate');

export interface Rule {
  /** Name of the alert; undefined if the rule records a series. */
  alert?: string;
  /** Name of the series that the rule records; undefined if the rule is an alert. */
  record?: string;
  expr: string;
  for?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

interface RuleSettings {
  runbookUrl: string;
  evaluationSeconds: number;
  objectives: Record<string, number>;
  thresholds: Record<string, number>;
}

/** The chart's default values for the rules. */
export const ruleSettings: RuleSettings = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')).prometheusRule;

/** Returns the rules for the release `formgate` in the namespace `forms`. `replaced` overrides the chart's defaults. */
export function ruleText(replaced: Record<string, string | number> = {}): string {
  const { runbookUrl, evaluationSeconds, objectives, thresholds } = ruleSettings;
  const { matchers = 'namespace="forms",release="formgate"' } = replaced;
  const values: Record<string, string | number> = {
    ...{ matchers, recorded: matchers, missingJobs: '', runbookUrl, evaluationSeconds },
    ...{ ...objectives, ...thresholds, ...replaced },
  };
  const text = readFileSync(join(chart, 'files/alerts.yaml'), 'utf8').replace(/^\s*#.*\n/gm, '');
  return text.replace(/\$\{(\w+)\}/g, (placeholder, name: string) => String(values[name] ?? placeholder));
}

/** Returns the terms of FormgateServiceDown that the chart adds for the jobs of its ServiceMonitor. */
export function missingJobs(jobs: string[], matchers = 'namespace="forms",release="formgate"'): string {
  const named = (job: string) =>
    `label_replace(label_replace(absent(up{${matchers},job="${job}"}), "namespace", "forms", "", ""), "release", "formgate", "", "")`;
  return jobs.map((job) => `or group by (namespace, release, job) (${named(job)})`).join(' ');
}

export interface RuleFile {
  groups: { name: string; interval: string; rules: Rule[] }[];
}

/** Returns all rules of a file in order; by default, the chart's rules. */
export function rules({ groups }: RuleFile = parse(ruleText())): Rule[] {
  return groups.flatMap((group) => group.rules);
}

/**
 * Returns a rule file with one alert and the recording rules that it needs. Testing this file is much faster than
 * testing all rules.
 */
export function rulesOf(alert: string, file: RuleFile = parse(ruleText())): RuleFile {
  const [, sli] = /sli="([^"]+)"/.exec(rules(file).find((rule) => rule.alert === alert)?.expr ?? '') ?? [];
  const needed = new Set([alert]);
  for (const rule of rules(file).reverse()) {
    const name = rule.alert ?? rule.record ?? '';
    if (needed.has(name)) for (const [used] of rule.expr.matchAll(/formgate:[\w:]+/g)) needed.add(used);
  }
  const isNeeded = ({ alert: name, record = '', labels }: Rule) =>
    needed.has(name ?? record) && (labels?.sli === undefined || labels.sli === sli);
  return { groups: file.groups.map((group) => ({ ...group, rules: group.rules.filter(isNeeded) })) };
}

/** Returns the names of all alerts, each once. */
export function alertNames(): string[] {
  return [...new Set(rules().flatMap(({ alert }) => alert ?? []))];
}

/** Returns the name of the runbook of an alert, such as `store-down` for FormgateStoreDown. */
export function runbookOf(alert: string): string {
  return alert
    .replace(/^Formgate/, '')
    .replace(/(?<!^)[A-Z]/g, '-$&')
    .toLowerCase();
}
