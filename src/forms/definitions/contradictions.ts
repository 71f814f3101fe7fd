// Finds contradictions in a form definition whose fields are valid. All functions are pure.
import type { FieldError } from '../../service/http/problem.ts';
import { parseDuration } from '../../service/operations/duration.ts';
import { definitionIdPattern, type FormDefinition } from './definition.ts';

/** The specification's default retention periods. An operator may have configured other defaults for the reconciler. */
const defaults = { warnBefore: 'P3D', lockAfter: 'P15D' };

export function contradictionsOf(definition: FormDefinition): FieldError[] {
  return [
    ...longPeriods(definition),
    ...retentionProblems(definition),
    ...applicantProblems(definition),
    ...linkProblems(definition),
    ...calendarProblems(definition),
  ];
}

/**
 * Reports an id whose length or characters are not allowed, because the form service never looks up such an id. `id` is
 * the member `id` of the definition.
 */
export function idProblems(id: unknown): FieldError[] {
  if (id === undefined || (typeof id === 'string' && definitionIdPattern.test(id))) return [];
  return [{ pointer: '/id', detail: 'must be 1 to 50 letters, digits, spaces, hyphens and underscores' }];
}

function longPeriods({ retention }: FormDefinition): FieldError[] {
  const periods = ['warnBefore', 'lockAfter', 'deleteAfter'] as const;
  const isLong = (name: (typeof periods)[number]) =>
    retention?.[name] !== undefined && parseDuration(retention[name]) === undefined;
  const detail = 'is longer than a century: forms of this definition never expire';
  return periods.filter(isLong).map((name) => ({ pointer: `/retention/${name}`, detail }));
}

function retentionProblems({ retention }: FormDefinition): FieldError[] {
  const warnBefore = retention?.warnBefore ?? defaults.warnBefore;
  const lockAfter = retention?.lockAfter ?? defaults.lockAfter;
  const [warning, lock] = [parseDuration(warnBefore), parseDuration(lockAfter)];
  if (warning === undefined || lock === undefined) return [];
  if (lock === 0) return [{ pointer: '/retention/lockAfter', detail: 'locks drafts as soon as they are created' }];
  if (warning === 0 || warning < lock) return [];
  const named = retention?.warnBefore === undefined ? 'lockAfter' : 'warnBefore';
  const detail = `warns before the draft exists: warnBefore (${warnBefore}) must be shorter than lockAfter (${lockAfter})`;
  return [{ pointer: `/retention/${named}`, detail }];
}

function applicantProblems({ anonymousApply, applicantRoles, clerkRoles }: FormDefinition): FieldError[] {
  if (anonymousApply || applicantRoles.length > 0 || clerkRoles.length > 0) return [];
  const detail = 'names no role, and anonymousApply is not set: nobody can create forms';
  return [{ pointer: '/applicantRoles', detail }];
}

/**
 * Reports `scheduledIntakes: true` without intake windows. The older platform takes the windows from its calendar
 * service; Formgate ignores the field.
 */
function calendarProblems({ scheduledIntakes, intake }: FormDefinition): FieldError[] {
  if (scheduledIntakes !== true || intake) return [];
  const detail = 'has no effect: list the windows in intake, otherwise forms can be created at any time';
  return [{ pointer: '/scheduledIntakes', detail }];
}

function linkProblems({ formDraftUrlTemplate: template }: FormDefinition): FieldError[] {
  if (!template) return [];
  const pointer = '/formDraftUrlTemplate';
  if (!/^https?:\/\//.test(template)) return [{ pointer, detail: 'must be an http or https URL' }];
  return /\{\s*id\s*\}/.test(template) ? [] : [{ pointer, detail: 'does not contain {{id}}, so it leads to no form' }];
}
