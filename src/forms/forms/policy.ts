// Decides what a caller may do with a form, by the roles and statuses of the catalogue. It performs no queries: it gets
// the caller, the form and, if the definition's roles matter, the definition as arguments. Actions that the catalogue
// does not allow are refused.
import type { Caller } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import { type IntakeWindow, isOpen, nearestWindow } from '../definitions/intake.ts';
import { hasOneOf } from '../definitions/named-roles.ts';
import { type Action, actions, type FormRole, type FormStatus, formRoles } from './catalogue.ts';
import type { Form, Tombstone } from './form.ts';

export const adminRole = 'form-admin';
export const intakeRole = 'intake-application';

/** True if the caller is a person who signed in, not an application. */
export function isPerson({ roles, isServiceAccount }: Caller): boolean {
  return !roles.has(intakeRole) && !isServiceAccount;
}

/** The roles that a definition names for its callers. */
export interface DefinitionRoles {
  applicantRoles: readonly string[];
  assessorRoles: readonly string[];
  clerkRoles: readonly string[];
}

/** True if only the definition can tell whether the caller has a role that allows the action. */
export function needsDefinition(action: Action, caller: Caller, form: Form | Tombstone): boolean {
  const allowed = allowedRoles(action);
  const known = rolesOf(caller, form, undefined);
  return allowed.some((role) => formRoles[role].fromDefinition) && !allowed.some((role) => known.has(role));
}

/**
 * Returns the role in which the caller performs the action. Throws Problem `forbidden` if the caller has no role for
 * the action. If only the form's status prevents the action, throws the conflict `form-locked` or `form-not-draft`. For
 * `read-data`, throws `forbidden` instead of `form-not-draft`.
 */
export function decide(action: Action, caller: Caller, form: Form, definition: DefinitionRoles | undefined): FormRole {
  const roles = rolesOf(caller, form, definition);
  const mine = allowedRoles(action).filter((role) => roles.has(role));
  const allowed = mine.find((role) => statusesOf(action, role).includes(form.status));
  if (allowed) return allowed;
  if (mine.length === 0) throw refusal(caller, form);
  throw wrongStatus(action, form.status, mine);
}

/** Returns the statuses in which a role may perform the action. */
export function statusesOf(action: Action, role: FormRole): readonly FormStatus[] {
  return actions[action].roles[role] ?? [];
}

/** Returns the roles that allow an action, in the order in which they are tried. */
function allowedRoles(action: Action): FormRole[] {
  return Object.keys(actions[action].roles) as FormRole[];
}

/**
 * Returns Problem `gone`. Returns `forbidden` instead if the caller could not have performed the action even as the
 * form's creator.
 */
export function refuseDeleted(
  action: Action,
  caller: Caller,
  tombstone: Tombstone,
  definition: DefinitionRoles | undefined,
): Problem {
  const roles = rolesOf(caller, tombstone, definition);
  // Without the definition, nobody knows who could have been an applicant.
  if (!definition && roles.has('creator')) roles.add('applicant');
  const isAllowed = allowedRoles(action).some((role) => roles.has(role));
  return isAllowed ? new Problem('gone', 'The form was deleted.') : refusal(caller, tombstone);
}

function rolesOf(caller: Caller, form: Form | Tombstone, definition: DefinitionRoles | undefined): Set<FormRole> {
  const roles = new Set<FormRole>();
  const hasOne = (names: readonly string[] = []) => hasOneOf(caller.roles, names);
  if (caller.roles.has(intakeRole)) {
    if (form.anonymousApplicant) roles.add('intake');
    // An intake application acts for people without an account, whatever other roles its account has.
    else return roles;
  }
  if (caller.roles.has(adminRole)) roles.add('admin');
  const creator = isCreator(caller, form);
  if (creator) roles.add('creator');
  const clerk = hasOne(definition?.clerkRoles);
  if (creator && (clerk || hasOne(definition?.applicantRoles))) roles.add('applicant');
  if (clerk) roles.add('clerk');
  if (hasOne(definition?.assessorRoles)) roles.add('assessor');
  return roles;
}

/**
 * True if the caller created the form. Subjects are unique only within their issuer. For a form of an anonymous
 * applicant, the intake application does not count as the creator, because its access requires the applicant's code.
 * The creator of a deleted form is unknown, so any signed-in person counts as its creator.
 */
function isCreator(caller: Caller, form: Form | Tombstone): boolean {
  if (form.anonymousApplicant) return false;
  if (!('createdBy' in form)) return true;
  return form.createdBy.id === caller.subject && form.issuer === caller.issuer;
}

/** The 403 for a caller without a suitable role. Its detail tells intake applications which forms they may use. */
function refusal(caller: Caller, form: Tombstone): Problem {
  const isOfAccount = caller.roles.has(intakeRole) && !form.anonymousApplicant;
  return new Problem(
    'forbidden',
    isOfAccount
      ? 'An intake application may use only forms that an intake application created for an applicant without an account.'
      : 'The caller may not do this with this form.',
  );
}

function wrongStatus(action: Action, status: FormStatus, roles: FormRole[]): Problem {
  const onlyAssessor = roles.every((role) => role === 'assessor');
  if (status === 'Locked' && !onlyAssessor)
    return new Problem('form-locked', 'The form is locked; an administrator can unlock it.');
  // The caller may never read a form in this status: a clerk may not read a submitted form, and an assessor may not
  // read a draft. The problem is therefore not a conflict.
  if (action === 'read-data')
    return new Problem('forbidden', `The caller may not read the data of a form that is ${status}.`);
  return new Problem('form-not-draft', `The form is ${status}, not Draft.`, { members: { formStatus: status } });
}

/**
 * Throws Problem `intake-closed`, with the dates of the nearest window, if the definition accepts no applications now.
 * Clerks are exempt, because they may later enter applications that arrived in time. Applicants are exempt if their
 * submitted form was returned to them.
 */
export function requireOpenIntake(
  caller: Caller,
  definition: Pick<DefinitionRoles, 'clerkRoles'> & Intake,
  now: Date,
  form?: Pick<Form, 'submitted'>,
): void {
  const { intake, name } = definition;
  if (!intake || isOpen(intake, now) || form?.submitted) return;
  if (hasOneOf(caller.roles, definition.clerkRoles)) return;
  const nearest = nearestWindow(intake, now);
  const [opens, closes] = [nearest?.opens?.toISOString() ?? null, nearest?.closes?.toISOString() ?? null];
  const dates = [opens && `from ${opens}`, closes && `until ${closes}`].filter(Boolean).join(' ');
  throw new Problem('intake-closed', `Applications for “${name}” are taken ${dates}.`, { members: { opens, closes } });
}

interface Intake {
  name: string;
  intake?: readonly IntakeWindow[] | null | undefined;
}

/** The roles in which a caller can create a form. */
export type CreatingRole = 'intake' | 'applicant' | 'clerk';

/**
 * Returns the role in which the caller creates a form. An intake application creates forms for applicants without an
 * account, if the definition allows it, and no other forms, because it could not use them. A clerk who may also apply
 * counts as the applicant if the request names no applicant.
 */
export function decideCreate(
  caller: Caller,
  definition: DefinitionRoles & { anonymousApply: boolean },
  forAnother: boolean,
): CreatingRole {
  const hasOne = (names: readonly string[]) => hasOneOf(caller.roles, names);
  const intake = caller.roles.has(intakeRole);
  if (intake) {
    if (definition.anonymousApply) return 'intake';
    throw new Problem('forbidden', 'The form definition does not permit applicants without an account.');
  }
  const mayApply = hasOne(definition.applicantRoles);
  if (hasOne(definition.clerkRoles) && (forAnother || !mayApply)) return 'clerk';
  if (mayApply) return 'applicant';
  throw new Problem('forbidden', 'The caller has none of the roles that may create a form of this definition.');
}
