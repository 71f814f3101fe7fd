// Builds the audit event of a request from its route, its caller and its status. A request has no event if its caller
// is unknown and the request was refused before it reached the handler. Anyone can send such requests, and the log line
// has all known facts.
import type { AuditEvent } from './audit.ts';
import { type AuditAction, auditActions, objectParams } from './audit-actions.ts';

type Outcome = AuditEvent['outcome'];

/** The possible actions of a route whose action depends on the request. */
export interface AuditChoice<Input> {
  actions: readonly AuditAction[];
  /**
   * Returns the action of a request; undefined if the request changes nothing. Absent if a guard of the route notes the
   * action.
   */
  of?(input: Input): AuditAction | undefined;
  /** The action of a request that is refused before its input is known to be valid. Such requests have no other. */
  otherwise?: AuditAction;
}

/** The audit event of a route. `unaudited` states why a route that changes something needs no event. */
export type RouteAudit<Input> = AuditAction | AuditChoice<Input> | { unaudited: string };

declare global {
  namespace Express {
    interface Locals {
      audit?: RequestAudit;
    }
  }
}

export interface RequestAudit {
  /** The action of the request. Undefined until it is known, and for a request that needs no event. */
  action: AuditAction | undefined;
  /** True once the guards have passed and the input is valid. */
  isReached: boolean;
  objectId?: string;
  /** Ids of the objects that the response contains, for an action that returns several objects. */
  objectIds?: string[];
  /** URN of the tenant; by default, of the caller's tenant. */
  tenant?: string;
  /** By default, the outcome is derived from the status. */
  outcome?: Outcome;
  /** True if the identity provider has proven that it sent the request. */
  isProvider?: boolean;
}

/** Throws if the route names an action that the catalogue lacks: its first request would end the process. */
export function requireKnownActions(audit: RouteAudit<never> | undefined, path: string): void {
  if (audit === undefined || (typeof audit === 'object' && 'unaudited' in audit)) return;
  const { actions } = typeof audit === 'string' ? { actions: [audit] } : audit;
  for (const action of actions)
    if (!Object.hasOwn(auditActions, action)) throw new Error(`audit-actions.ts lacks the action ${action} of ${path}`);
}

/** Starts the audit event of a request, if its route has one. Call this function when the route is known. */
export function beginAudit(audit: RouteAudit<never> | undefined, locals: Express.Locals): void {
  if (audit === undefined || (typeof audit === 'object' && 'unaudited' in audit)) return;
  locals.audit = { action: typeof audit === 'string' ? audit : audit.otherwise, isReached: false };
}

interface Input {
  params: unknown;
}

/**
 * Marks the request as reached, and adds the action to the audit event if it depends on the input. Call this function
 * when the input is valid, before the handler runs.
 */
export function reachAudit<I extends Input>(audit: RouteAudit<I> | undefined, locals: Express.Locals, input: I): void {
  const pending = locals.audit;
  if (!pending) return;
  pending.isReached = true;
  if (typeof audit === 'string' || !audit || !('of' in audit)) return;
  pending.action = audit.of?.(input);
  noteObject(locals, input.params);
}

/** Adds the object that the validated path parameters name to the audit event. Refused requests need it too. */
export function noteObject({ audit }: Express.Locals, params: unknown): void {
  if (audit?.action === undefined) return;
  const ids = objectParams[auditActions[audit.action].object].map((name) => (params as Params)?.[name]);
  if (ids.length > 0 && ids.every((id) => id !== undefined)) audit.objectId = ids.join('/');
}

type Params = Record<string, unknown> | undefined;

/** Adds `facts` to the request's audit event. Handlers call this function with facts that only they know. */
export function noteAudit({ locals }: { locals: Express.Locals }, facts: Partial<RequestAudit>): void {
  if (locals.audit) Object.assign(locals.audit, facts);
}

/** Removes the audit event of a request that turns out to change nothing. */
export function dropAudit({ locals }: { locals: Express.Locals }): void {
  delete locals.audit;
}

export function auditEventOf(locals: Express.Locals, status: number): AuditEvent | undefined {
  const { audit, caller, signedIn } = locals;
  if (audit?.action === undefined || !(audit.isReached || caller || signedIn)) return undefined;
  const tenant = audit.tenant ?? signedIn?.tenantId ?? locals.tenant?.id ?? caller?.tenant?.id;
  const { objectId: id, objectIds: ids } = audit;
  return {
    action: audit.action,
    actor: actorOf(locals, audit),
    ...(tenant !== undefined && { tenant }),
    object: { type: auditActions[audit.action].object, ...(id !== undefined && { id }), ...(ids && { ids }) },
    outcome: audit.outcome ?? outcomeOf(status),
  };
}

function actorOf({ caller, signedIn }: Express.Locals, { isProvider }: RequestAudit): AuditEvent['actor'] {
  if (isProvider) return { kind: 'identity-provider' };
  if (caller) return { kind: 'account', id: caller.subject, realm: caller.realm, clientId: caller.clientId };
  if (signedIn) return { kind: 'person', id: signedIn.subject, clientId: signedIn.clientId };
  return { kind: 'browser' };
}

function outcomeOf(status: number): Outcome {
  if (status === 499) return 'unknown';
  if (status < 400) return 'succeeded';
  return status < 500 ? 'refused' : 'failed';
}
