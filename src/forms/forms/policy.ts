// Who may do what with a form, as one table. It reads nothing: the caller, the form and, where roles of the definition
// could matter, the definition are handed in. What the table does not name is refused.
import type { Caller } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Form, FormStatus } from './form.ts';

export const adminRole = 'form-admin';
export const intakeRole = 'intake-application';

export type Action =
  | 'read'
  | 'send-code'
  | 'read-data'
  | 'update-data'
  | 'submit'
  | 'unlock'
  | 'archive'
  | 'to-draft'
  | 'hold'
  | 'release'
  | 'delete';

/**
 * In what part a caller meets a form. `intake`: an intake application with a form of an anonymous applicant. `creator`:
 * the signed-in creator; `applicant`: the creator who still may apply.
 */
export type Part = 'admin' | 'intake' | 'creator' | 'applicant' | 'clerk' | 'assessor';

/** The roles that a definition names. */
export interface DefinitionRoles {
  applicantRoles: readonly string[];
  assessorRoles: readonly string[];
  clerkRoles: readonly string[];
}

type Rule = Partial<Record<Part, readonly FormStatus[]>>;

const any: readonly FormStatus[] = ['Draft', 'Locked', 'Submitted', 'Archived'];
const draft: readonly FormStatus[] = ['Draft'];
const unlocked: readonly FormStatus[] = ['Draft', 'Submitted', 'Archived'];
const received: readonly FormStatus[] = ['Submitted', 'Archived'];

/** Parts in the order in which they are tried, and the statuses in which each may act. */
const rules: Record<Action, Rule> = {
  read: { admin: any, intake: any, applicant: any, clerk: any, assessor: any },
  'send-code': { intake: draft },
  'read-data': { admin: any, applicant: unlocked, clerk: draft, assessor: received, intake: unlocked },
  'update-data': { intake: draft, applicant: draft, clerk: draft },
  submit: { intake: draft, applicant: draft, clerk: draft },
  // Whether the status fits an administrator's operation is the transition's own condition.
  unlock: { admin: any },
  archive: { admin: any },
  'to-draft': { admin: any, assessor: any },
  hold: { admin: any },
  release: { admin: any },
  delete: { admin: any, creator: draft, intake: draft },
};

/** Whether roles of the definition could give the caller a part in the action that it does not have without them. */
export function needsDefinition(action: Action, caller: Caller, form: Form | Remains): boolean {
  const rule = rules[action];
  const parts = partsOf(caller, form, undefined);
  const depends = (['applicant', 'clerk', 'assessor'] as const).some((part) => rule[part] !== undefined);
  return depends && !Object.keys(rule).some((part) => parts.has(part as Part));
}

/**
 * The part in which the caller does the action. Throws Problem `forbidden` for a caller without a part in it, and the
 * conflict (`form-locked`, `form-not-draft`) where the part is right and the status is not.
 */
export function decide(action: Action, caller: Caller, form: Form, roles: DefinitionRoles | undefined): Part {
  const parts = partsOf(caller, form, roles);
  const entries = Object.entries(rules[action]) as [Part, readonly FormStatus[]][];
  const mine = entries.filter(([part]) => parts.has(part));
  for (const [part, statuses] of mine) if (statuses.includes(form.status)) return part;
  if (mine.length === 0) throw refusal(caller, form);
  throw wrongStatus(
    action,
    form.status,
    mine.map(([part]) => part),
  );
}

/** The statuses in which a part may do the action. */
export function statusesOf(action: Action, part: Part): readonly FormStatus[] {
  return rules[action][part] ?? [];
}

/** What is known of a deleted form: not who created it. */
export interface Remains {
  anonymousApplicant: boolean;
}

/** Throws Problem `forbidden` for a caller who could have had no part in the action, whoever created the form. */
export function decideDeleted(
  action: Action,
  caller: Caller,
  remains: Remains,
  roles: DefinitionRoles | undefined,
): void {
  const parts = partsOf(caller, remains, roles);
  if (!Object.keys(rules[action]).some((part) => parts.has(part as Part))) throw refusal(caller, remains);
}

function partsOf(caller: Caller, form: Form | Remains, roles: DefinitionRoles | undefined): ReadonlySet<Part> {
  const parts = new Set<Part>();
  const hasOne = (names: readonly string[] | undefined) => names?.some((role) => caller.roles.has(role)) ?? false;
  if (caller.roles.has(adminRole)) parts.add('admin');
  if (caller.roles.has(intakeRole) && form.anonymousApplicant) parts.add('intake');
  const creator = isCreator(caller, form);
  if (creator) parts.add('creator');
  const clerk = hasOne(roles?.clerkRoles);
  if (creator && (clerk || hasOne(roles?.applicantRoles))) parts.add('applicant');
  if (clerk) parts.add('clerk');
  if (hasOne(roles?.assessorRoles)) parts.add('assessor');
  return parts;
}

/**
 * A subject is unique only for its issuer. A form of an anonymous applicant has no creator in this sense: an intake
 * application does not get round the code by being the account that created it. Of a deleted form anybody signed in may
 * have been the creator.
 */
function isCreator(caller: Caller, form: Form | Remains): boolean {
  if (form.anonymousApplicant) return false;
  if (!('createdBy' in form)) return !caller.roles.has(intakeRole);
  return form.createdBy.id === caller.subject && form.issuer === caller.issuer;
}

/** 403 for a caller without a part, with the reason that helps an intake application's developer. */
function refusal(caller: Caller, form: Remains): Problem {
  const outOfReach = caller.roles.has(intakeRole) && !form.anonymousApplicant;
  return new Problem(
    'forbidden',
    outOfReach
      ? 'An intake application reaches only forms that one created for an applicant without an account.'
      : 'The caller may not do this with this form.',
  );
}

function wrongStatus(action: Action, status: FormStatus, parts: Part[]): Problem {
  const onlyAssessor = parts.every((part) => part === 'assessor');
  if (status === 'Locked' && !onlyAssessor)
    return new Problem('form-locked', 'The form is locked; an administrator can unlock it.');
  // Reading is not a change: a clerk of a submitted form, or an assessor of a draft, simply has no access to it.
  if (action === 'read-data')
    return new Problem('forbidden', `The caller may not read the answers of a form that is ${status}.`);
  return new Problem('form-not-draft', `The form is ${status}, not Draft.`, { members: { formStatus: status } });
}

/** As what a caller creates a form. */
export type CreatingPart = 'intake' | 'applicant' | 'clerk';

/**
 * An intake application creates for somebody without an account, where the definition permits it. A clerk who may also
 * apply is an applicant unless the form is for somebody else.
 */
export function decideCreate(
  caller: Caller,
  definition: DefinitionRoles & { anonymousApply: boolean },
  forSomebody: boolean,
): CreatingPart {
  const hasOne = (names: readonly string[]) => names.some((role) => caller.roles.has(role));
  const intake = caller.roles.has(intakeRole);
  if (intake && definition.anonymousApply) return 'intake';
  const mayApply = hasOne(definition.applicantRoles);
  if (hasOne(definition.clerkRoles) && (forSomebody || !mayApply)) return 'clerk';
  if (mayApply) return 'applicant';
  throw new Problem(
    'forbidden',
    intake
      ? 'The form definition does not permit applicants without an account.'
      : 'The caller has none of the roles that may create a form of this definition.',
  );
}
