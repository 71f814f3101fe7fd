// Decides who may do what with a form, by the roles and statuses of the catalogue. It reads nothing: the caller, the form
// and, if roles of the definition matter, the definition are arguments. What the catalogue does not allow is refused.
import type { Caller } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import { type Action, actions, type FormRole, type FormStatus, formRoles } from './catalogue.ts';
import type { Form, Tombstone } from './form.ts';

const adminRole = 'form-admin';
export const intakeRole = 'intake-application';

/** The roles of callers that a definition names. */
export interface DefinitionRoles {
  applicantRoles: readonly string[];
  assessorRoles: readonly string[];
  clerkRoles: readonly string[];
}

/** Whether roles of the definition could allow the caller an action that its other roles do not. */
export function needsDefinition(action: Action, caller: Caller, form: Form | Tombstone): boolean {
  const allowed = allowedRoles(action);
  const known = rolesOf(caller, form, undefined);
  return allowed.some((role) => formRoles[role].fromDefinition) && !allowed.some((role) => known.has(role));
}

/**
 * The role in which the caller does the action. Throws Problem `forbidden` for a caller without such a role, and the
 * conflict (`form-locked`, `form-not-draft`) if only the status is wrong.
 */
export function decide(action: Action, caller: Caller, form: Form, definition: DefinitionRoles | undefined): FormRole {
  const roles = rolesOf(caller, form, definition);
  const mine = allowedRoles(action).filter((role) => roles.has(role));
  const allowed = mine.find((role) => statusesOf(action, role).includes(form.status));
  if (allowed) return allowed;
  if (mine.length === 0) throw refusal(caller, form);
  throw wrongStatus(action, form.status, mine);
}

/** The statuses in which a role may do the action. */
export function statusesOf(action: Action, role: FormRole): readonly FormStatus[] {
  return actions[action].roles[role] ?? [];
}

/** In the order in which they are tried. */
function allowedRoles(action: Action): FormRole[] {
  return Object.keys(actions[action].roles) as FormRole[];
}

/** The refusal: `gone`, or `forbidden` to a caller who could not have done the action with any creator of the form. */
export function refuseDeleted(
  action: Action,
  caller: Caller,
  tombstone: Tombstone,
  definition: DefinitionRoles | undefined,
): Problem {
  const roles = rolesOf(caller, tombstone, definition);
  const isAllowed = allowedRoles(action).some((role) => roles.has(role));
  return isAllowed ? new Problem('gone', 'The form was deleted.') : refusal(caller, tombstone);
}

function rolesOf(
  caller: Caller,
  form: Form | Tombstone,
  definition: DefinitionRoles | undefined,
): ReadonlySet<FormRole> {
  const roles = new Set<FormRole>();
  const hasOne = (names: readonly string[] | undefined) => names?.some((role) => caller.roles.has(role)) ?? false;
  if (caller.roles.has(adminRole)) roles.add('admin');
  if (caller.roles.has(intakeRole) && form.anonymousApplicant) roles.add('intake');
  const creator = isCreator(caller, form);
  if (creator) roles.add('creator');
  const clerk = hasOne(definition?.clerkRoles);
  if (creator && (clerk || hasOne(definition?.applicantRoles))) roles.add('applicant');
  if (clerk) roles.add('clerk');
  if (hasOne(definition?.assessorRoles)) roles.add('assessor');
  return roles;
}

/**
 * A subject is unique only for its issuer. The intake application that created a form of an anonymous applicant is not its
 * creator: it needs the applicant's code. Any signed-in person may have been the creator of a deleted form.
 */
function isCreator(caller: Caller, form: Form | Tombstone): boolean {
  if (form.anonymousApplicant) return false;
  if (!('createdBy' in form)) return !caller.roles.has(intakeRole);
  return form.createdBy.id === caller.subject && form.issuer === caller.issuer;
}

/** The 403 for a caller without a role. It tells developers of intake applications which forms these can use. */
function refusal(caller: Caller, form: Tombstone): Problem {
  const isOfAccount = caller.roles.has(intakeRole) && !form.anonymousApplicant;
  return new Problem(
    'forbidden',
    isOfAccount
      ? 'An intake application may use only forms that one created for an applicant without an account.'
      : 'The caller may not do this with this form.',
  );
}

function wrongStatus(action: Action, status: FormStatus, roles: FormRole[]): Problem {
  const onlyAssessor = roles.every((role) => role === 'assessor');
  if (status === 'Locked' && !onlyAssessor)
    return new Problem('form-locked', 'The form is locked; an administrator can unlock it.');
  // A clerk may not read a submitted form, nor an assessor a draft. This is not a conflict.
  if (action === 'read-data')
    return new Problem('forbidden', `The caller may not read the data of a form that is ${status}.`);
  return new Problem('form-not-draft', `The form is ${status}, not Draft.`, { members: { formStatus: status } });
}

/** A role in which a caller creates a form. */
export type CreatingRole = 'intake' | 'applicant' | 'clerk';

/**
 * An intake application creates forms for applicants without an account, if the definition permits it. A clerk who may also
 * apply is an applicant unless the request names one.
 */
export function decideCreate(
  caller: Caller,
  definition: DefinitionRoles & { anonymousApply: boolean },
  forAnother: boolean,
): CreatingRole {
  const hasOne = (names: readonly string[]) => names.some((role) => caller.roles.has(role));
  const intake = caller.roles.has(intakeRole);
  if (intake && definition.anonymousApply) return 'intake';
  const mayApply = hasOne(definition.applicantRoles);
  if (hasOne(definition.clerkRoles) && (forAnother || !mayApply)) return 'clerk';
  if (mayApply) return 'applicant';
  throw new Problem(
    'forbidden',
    intake
      ? 'The form definition does not permit applicants without an account.'
      : 'The caller has none of the roles that may create a form of this definition.',
  );
}
