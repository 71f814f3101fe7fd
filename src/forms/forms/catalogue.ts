// The catalogue of form statuses and of the actions on one form. Types, zod schemas, the policy, OpenAPI texts, the
// expiry's statements and docs/form-statuses.md are derived from it. README.md says how to add an operation.

/** The statuses by name. A status with `expiry` ends after a period: the reconciler then locks or deletes the form. */
export const statuses = {
  Draft: {
    description: 'The applicant is filling in the form.',
    expiry: {
      since: 'last_accessed',
      description: 'Becomes Locked when it was not opened for `retention.lockAfter`; the applicant is warned before.',
    },
  },
  Locked: {
    description: 'The draft was not opened for too long. Only an administrator can read its form data, or unlock it.',
    expiry: {
      since: 'locked',
      description: 'Is deleted after `retention.deleteAfter`, once the event `form-locked` is accepted.',
    },
  },
  Submitted: { description: 'The form data was validated and submitted. It can no longer be changed.' },
  Archived: { description: 'An administrator archived the submitted form.' },
} as const satisfies Record<string, StatusEntry>;

interface StatusEntry {
  description: string;
  expiry?: {
    /** The column from which the retention period counts. The release of a held form sets it to now. */
    since: 'last_accessed' | 'locked';
    description: string;
  };
}

export type FormStatus = keyof typeof statuses;

export const formStatuses = Object.keys(statuses) as [FormStatus, ...FormStatus[]];

/** The name of a status that the reconciler ends after a period. */
export type ExpiringStatus = {
  [S in FormStatus]: (typeof statuses)[S] extends { expiry: object } ? S : never;
}[FormStatus];

export const expiringStatuses = formStatuses.filter((status): status is ExpiringStatus => 'expiry' in statuses[status]);

/** The roles of a caller on a form. `fromDefinition` is true if the form's definition decides who has the role. */
export const formRoles = {
  admin: { description: 'form-admin', fromDefinition: false },
  intake: { description: 'an intake application', fromDefinition: false },
  creator: { description: 'the signed-in creator', fromDefinition: false },
  applicant: { description: 'the creator who may apply', fromDefinition: true },
  clerk: { description: 'a clerk of the definition', fromDefinition: true },
  assessor: { description: 'an assessor of the definition', fromDefinition: true },
} as const;

export type FormRole = keyof typeof formRoles;

const draft = ['Draft'] as const;
const unlocked = ['Draft', 'Submitted', 'Archived'] as const;
const received = ['Submitted', 'Archived'] as const;
const anyStatus = formStatuses;

/** A change of the form's status by an action. */
export interface StatusMove {
  from: FormStatus;
  to: FormStatus;
  /** The column that is set to the time of the operation. */
  sets?: 'last_accessed' | 'submitted';
}

interface ActionEntry {
  description: string;
  /**
   * The roles that may perform the action, each with the form statuses in which it may do so. The roles are tried in
   * this order.
   */
  roles: Partial<Record<FormRole, readonly FormStatus[]>>;
  /** The change of the status. Absent if the action keeps the status. */
  move?: StatusMove;
  /** The event that the action sends, as a key of the catalogue of events (`store.ts` checks its type). */
  event?: string;
  /** The event that the action adds to the form's history. */
  recorded?: string;
}

/** The actions that have their own routes. */
export const requests = {
  read: {
    description: 'Reads the form without its form data. Does not set lastAccessed.',
    roles: { admin: anyStatus, intake: anyStatus, applicant: anyStatus, clerk: anyStatus, assessor: anyStatus },
  },
  'read-history': {
    description: 'Reads what happened to the form: changes of its status, holds, codes and warnings; never names.',
    roles: { admin: anyStatus },
  },
  'read-data': {
    description:
      'Reads the form data. Sets lastAccessed. An intake application needs the applicant’s code. No code can be sent after the submission.',
    roles: { admin: anyStatus, applicant: unlocked, clerk: draft, assessor: received, intake: unlocked },
  },
  'update-data': {
    description: 'Saves the form data. Sets lastAccessed.',
    roles: { intake: draft, applicant: draft, clerk: draft },
  },
  delete: {
    description:
      'Deletes the form and the applicant’s information, unless the form is on hold. An intake application needs the applicant’s code.',
    roles: { admin: anyStatus, creator: draft, intake: draft },
    event: 'form-deleted',
  },
} as const satisfies Record<string, ActionEntry>;

/**
 * Operations of `POST /form/v1/forms/{formId}`. For `unlock`, `archive` and `to-draft`, the policy does not check the
 * form's status. The change itself requires the status `from`; in other statuses, the service refuses it with 409
 * `conflict`.
 */
export const operations = {
  'send-code': {
    description: 'Sends a code to the applicant.',
    roles: { intake: draft },
    recorded: 'code-sent',
  },
  keep: {
    description: 'Sets lastAccessed of a draft, so that it is locked later. Never unlocks a form.',
    roles: { intake: draft, applicant: draft, clerk: draft },
  },
  submit: {
    description: 'Validates the form data and submits the form.',
    roles: { intake: draft, applicant: draft, clerk: draft },
    move: { from: 'Draft', to: 'Submitted', sets: 'submitted' },
    event: 'form-submitted',
    recorded: 'submitted',
  },
  unlock: {
    description: 'Makes a locked form a draft again.',
    roles: { admin: anyStatus },
    move: { from: 'Locked', to: 'Draft', sets: 'last_accessed' },
    event: 'form-unlocked',
    recorded: 'unlocked',
  },
  archive: {
    description: 'Archives a submitted form.',
    roles: { admin: anyStatus },
    move: { from: 'Submitted', to: 'Archived' },
    event: 'form-archived',
    recorded: 'archived',
  },
  'to-draft': {
    description: 'Returns a submitted form to the applicant as a draft.',
    roles: { admin: anyStatus, assessor: anyStatus },
    move: { from: 'Submitted', to: 'Draft', sets: 'last_accessed' },
    event: 'form-to-draft',
    recorded: 'to-draft',
  },
  hold: {
    description:
      'Puts the form on hold: it is neither locked nor deleted. A second hold without a reason keeps the reason of the first.',
    roles: { admin: anyStatus },
    recorded: 'held',
  },
  release: {
    description: 'Ends the hold and restarts the period of the status. Changes nothing if the form is not on hold.',
    roles: { admin: anyStatus },
    recorded: 'released',
  },
} as const satisfies Record<string, ActionEntry>;

export type Operation = keyof typeof operations;

export const operationNames = Object.keys(operations) as [Operation, ...Operation[]];

/** Operations that change the status. */
export type MoveOperation = {
  [O in Operation]: (typeof operations)[O] extends { move: object } ? O : never;
}[Operation];

export type Action = keyof typeof requests | Operation;

export const actions: Record<Action, ActionEntry> = { ...requests, ...operations };

/** Returns the statuses in which the action has an effect for at least one role. */
export function statusesForAction(action: Action): FormStatus[] {
  const { roles, move } = actions[action];
  const allowed = Object.values(roles).flat();
  return formStatuses.filter((status) => (move ? status === move.from : allowed.includes(status)));
}

/** Returns the text that describes an action in the OpenAPI document. */
export function describeAction(action: Action): string {
  return `${actions[action].description} Allowed: ${callersOf(action)}.`;
}

/** Lists the callers of an action for the documentation, such as `form-admin; a clerk of the definition (Draft)`. */
export function callersOf(action: Action): string {
  const { roles, move } = actions[action];
  const entries = Object.entries(roles) as [FormRole, readonly FormStatus[]][];
  return entries
    .map(([role, allowed]) => {
      const isAlways = move !== undefined || allowed.length === formStatuses.length;
      return `${formRoles[role].description}${isAlways ? '' : ` (${allowed.join(', ')})`}`;
    })
    .join('; ');
}
