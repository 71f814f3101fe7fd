// Rules that involve several settings of a process, as data. Documentation and tests are derived from the same lists.
import type { z } from 'zod';

/** A rule that involves several settings. A violation is reported under the first name. */
export interface SettingsRule {
  names: [string, ...string[]];
  holds(values: never): boolean;
  problem: string;
  /** The kind of the rule, set by the functions below. A test uses it to violate each rule. */
  form?: RuleForm;
}

export type RuleForm =
  | { kind: 'order'; lower: string; upper: string; mayEqual: boolean }
  | { kind: 'needs'; name: string; needed: string }
  | { kind: 'excludes'; name: string; other: string };

/** Marks the issues that rules raise. A marked issue does not prevent the check of further rules. */
const violation = { isViolation: true };
const isViolation = (issue: z.core.$ZodRawIssue) => issue.params === violation;

/** Adds rules to a schema. A rule is checked if its own settings are valid, even if other settings are invalid. */
export function withRules<S extends z.ZodObject>(schema: S, ...rules: SettingsRule[]): S {
  return rules.reduce((ruled, { names, holds, problem }) => {
    const concerned = new Set<PropertyKey>(names);
    return ruled.refine((values) => holds(values as never), {
      path: [names[0]],
      error: problem,
      params: violation,
      when: ({ issues }) => !issues.some((issue) => !isViolation(issue) && concerned.has(issue.path?.[0] ?? '')),
    });
  }, schema);
}

type Numbers = Record<string, number>;

/** Requires that the duration `shorter` is shorter than `longer`. With `mayEqual`, they may also be equal. */
export function orderRule(shorter: string, longer: string, { mayEqual = false } = {}): SettingsRule {
  return {
    names: [shorter, longer],
    holds: (values: Numbers) => isBelow(values[shorter], values[longer], mayEqual),
    problem: mayEqual ? `must not be longer than ${longer}` : `must be shorter than ${longer}`,
    form: { kind: 'order', lower: shorter, upper: longer, mayEqual },
  };
}

/** Requires that a limit for one member is at most the limit for the group that contains it. */
export function limitRule(ofMember: string, ofGroup: string): SettingsRule {
  return {
    names: [ofMember, ofGroup],
    holds: (values: Numbers) => isBelow(values[ofMember], values[ofGroup], true),
    problem: `must not be greater than ${ofGroup}`,
    form: { kind: 'order', lower: ofMember, upper: ofGroup, mayEqual: true },
  };
}

/** Requires the setting `needed` if `name` is set, because `name` has no effect or cannot work without it. */
export function needsRule(name: string, needed: string): SettingsRule {
  return {
    names: [name, needed],
    holds: (values: Record<string, unknown>) => !isSet(values[name]) || isSet(values[needed]),
    problem: `must not be set without ${needed}`,
    form: { kind: 'needs', name, needed },
  };
}

/** Allows at most one of two settings. */
export function excludesRule(name: string, other: string): SettingsRule {
  return {
    names: [name, other],
    holds: (values: Record<string, unknown>) => !isSet(values[name]) || !isSet(values[other]),
    problem: `must not be set together with ${other}`,
    form: { kind: 'excludes', name, other },
  };
}

function isBelow(lower = 0, upper = 0, mayEqual: boolean): boolean {
  return mayEqual ? lower <= upper : lower < upper;
}

/** True if a setting has a value. A list without items counts as not set. */
export function isSet(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}
