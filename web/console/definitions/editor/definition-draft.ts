// Converts a definition into the texts that a person edits, and back. Members that the editor has no field for are
// edited as JSON, so that nothing is lost.
import { asObject, type Definition } from '../definition.ts';
import { lineOf, type ParsedJson, parseJson, placeOf } from './json-places.ts';

export interface DefinitionDraft {
  name: string;
  description: string;
  anonymousApply: boolean;
  oneFormPerApplicant: boolean;
  applicantRoles: string;
  clerkRoles: string;
  assessorRoles: string;
  warnBefore: string;
  lockAfter: string;
  deleteAfter: string;
  dataSchema: string;
  uiSchema: string;
  others: string;
}

const roleNames = ['applicantRoles', 'clerkRoles', 'assessorRoles'] as const;
const periods = ['warnBefore', 'lockAfter', 'deleteAfter'] as const;
export const codeNames = ['dataSchema', 'uiSchema', 'others'] as const;
export type CodeName = (typeof codeNames)[number];

export const codeLabels: Record<CodeName, string> = {
  dataSchema: 'Data schema',
  uiSchema: 'UI schema',
  others: 'Other members',
};

const json = (value: unknown) => (value === undefined ? '' : JSON.stringify(value, undefined, 2));
const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
const listText = (value: unknown) => (Array.isArray(value) ? value.join(', ') : '');

export function draftOf(id: string, definition: Definition): DefinitionDraft {
  const { name, description, anonymousApply, oneFormPerApplicant, dataSchema, uiSchema, retention, ...rest } =
    definition;
  const { applicantRoles, clerkRoles, assessorRoles, id: _id, ...others } = rest;
  const { warnBefore, lockAfter, deleteAfter } = asObject(retention) ?? {};
  return {
    // The form service shows the id of a definition without a name.
    name: textOf(name) || id,
    description: textOf(description),
    anonymousApply: anonymousApply === true,
    // The form service allows one form for each applicant unless the definition says otherwise.
    oneFormPerApplicant: oneFormPerApplicant !== false,
    applicantRoles: listText(applicantRoles),
    clerkRoles: listText(clerkRoles),
    assessorRoles: listText(assessorRoles),
    warnBefore: textOf(warnBefore),
    lockAfter: textOf(lockAfter),
    deleteAfter: textOf(deleteAfter),
    dataSchema: json(dataSchema),
    uiSchema: json(uiSchema),
    others: json(others),
  };
}

export interface EditorProblem {
  /** Name of the control that has the problem. Its HTML id is `edit-` and this name. */
  control: string;
  /** Offset of the problem in the text, if the control is a code area. */
  offset?: number;
  text: string;
  severity: 'error' | 'warning';
}

/** Returns the problems of the texts themselves: no name, malformed JSON, or JSON of the wrong type. */
export function syntaxProblems(draft: DefinitionDraft): EditorProblem[] {
  const noName: EditorProblem = { control: 'name', text: 'Enter a name', severity: 'error' };
  return [...(draft.name.trim() === '' ? [noName] : []), ...codeProblems(draft)];
}

function codeProblems(draft: DefinitionDraft): EditorProblem[] {
  return codeNames.flatMap((name) => {
    const text = draft[name];
    if (text.trim() === '') return [];
    const parsed = parseJson(text);
    const isObject = parsed.fault !== undefined || name === 'dataSchema' || asObject(parsed.value) !== undefined;
    const fault = parsed.fault ?? (isObject ? undefined : { offset: 0, detail: 'It must be an object' });
    if (!fault) return [];
    const line = lineOf(text, fault.offset);
    return [
      {
        control: name,
        offset: fault.offset,
        text: `${codeLabels[name]}, line ${line}: ${fault.detail}`,
        severity: 'error',
      },
    ];
  });
}

/**
 * Converts a draft into a definition. The draft must have no syntax problems. Leaves out an empty list of roles, unless
 * `former` has the list too.
 */
export function definitionOf(id: string, draft: DefinitionDraft, former: Definition): Definition {
  const parsed = (name: CodeName) => (draft[name].trim() === '' ? undefined : (JSON.parse(draft[name]) as unknown));
  const given = periods.filter((name) => draft[name].trim() !== '').map((name) => [name, draft[name].trim()]);
  const retention = { ...withoutPeriods(former.retention), ...Object.fromEntries(given) };
  const roles = roleNames.flatMap((name) => {
    const list = draft[name].split(',').flatMap((role) => role.trim() || []);
    return list.length > 0 || former[name] !== undefined ? [[name, list] as const] : [];
  });
  const optional = {
    description: draft.description || undefined,
    oneFormPerApplicant:
      draft.oneFormPerApplicant && former.oneFormPerApplicant !== false
        ? former.oneFormPerApplicant
        : draft.oneFormPerApplicant,
    retention: Object.keys(retention).length > 0 ? retention : undefined,
    dataSchema: parsed('dataSchema'),
    uiSchema: parsed('uiSchema'),
  };
  const whole = { ...asObject(parsed('others')), id, name: draft.name, anonymousApply: draft.anonymousApply };
  const present = Object.entries(optional).filter(([, value]) => value !== undefined);
  return { ...whole, ...Object.fromEntries(roles), ...Object.fromEntries(present) };
}

function withoutPeriods(retention: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(asObject(retention) ?? {}).filter(([name]) => !periods.some((one) => one === name)),
  );
}

export interface FoundProblem {
  pointer: string;
  detail: string;
  severity: 'error' | 'warning';
}

/** Finds the control of each problem that the form service reported, and the problem's position in the control. */
export function placedProblems(found: readonly FoundProblem[], draft: DefinitionDraft): EditorProblem[] {
  // Many problems may be in the same text, which is parsed once.
  const parsed = new Map<CodeName, ParsedJson>();
  const offsetOf = (name: CodeName, pointer: string) => {
    const known = parsed.get(name) ?? parseJson(draft[name]);
    parsed.set(name, known);
    return placeOf(known, pointer);
  };
  return found.map((problem) => placedProblem(problem, draft, offsetOf));
}

type OffsetOf = (name: CodeName, pointer: string) => number;

function placedProblem(problem: FoundProblem, draft: DefinitionDraft, offsetOf: OffsetOf): EditorProblem {
  const { pointer, detail, severity } = problem;
  const [, member = '', ...rest] = pointer.split('/');
  const inner = rest.map((part) => `/${part}`).join('');
  const retention = periods.find((name) => name === rest[0]);
  const inCode = (name: CodeName, place: string): EditorProblem => {
    const offset = offsetOf(name, place);
    const line = lineOf(draft[name], offset);
    const text = `${codeLabels[name]}, line ${line}: ${detail}${place === '' ? '' : ` (${place})`}`;
    return { control: name, offset, text, severity };
  };
  if (member === 'retention') return { control: retention ?? 'lockAfter', text: `Retention: ${detail}`, severity };
  if (member === 'dataSchema' || member === 'uiSchema') return inCode(member, inner);
  if (member !== 'id' && Object.hasOwn(draft, member))
    return { control: member, text: `${member}: ${detail}`, severity };
  return inCode('others', pointer);
}
