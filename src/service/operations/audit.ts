// Audit events: who did what to which object. An event is the field `audit` of a log line. It identifies people and
// objects only by their ids, and contains no names, addresses, codes, tokens or form data. docs/audit.md describes the
// events; docs/audit-event.schema.json defines their format.
import { z } from 'zod';
import { type AuditAction, auditActions } from './audit-actions.ts';
import type { Logger } from './log.ts';

const actions = Object.keys(auditActions) as [AuditAction, ...AuditAction[]];
const objectTypes = [...new Set(Object.values(auditActions).map(({ object }) => object))];

const actor = z
  .strictObject({
    kind: z
      .enum(['account', 'person', 'browser', 'identity-provider', 'service', 'command'])
      .describe(
        'account: the account of a bearer token. person: signed in with a session of the token handler. browser: nobody is signed in. service: a process of Formgate, in the background. command: a command that an operator has run',
      ),
    id: z.string().optional().describe('Subject of the account or the person; name of the service or the command'),
    realm: z.string().optional().describe('Realm of the account'),
    clientId: z
      .string()
      .optional()
      .describe('Client that the account’s token was issued to, or the client of the session'),
  })
  .describe('Who acted');

export const auditEvent = z
  .strictObject({
    action: z.enum(actions),
    actor,
    tenant: z.string().optional().describe('URN. Absent for core, and before the tenant is known'),
    object: z
      .strictObject({
        type: z.enum(objectTypes as [string, ...string[]]),
        id: z.string().optional().describe('Absent if nothing was created, or if the action concerns several objects'),
        ids: z.array(z.string()).optional().describe('Ids of the objects, for an action that returns several of them'),
      })
      .describe('What the action changed'),
    outcome: z
      .enum(['succeeded', 'refused', 'failed', 'unknown'])
      .describe(
        'refused: the caller may not do this, or the request is invalid. failed: a service failed. unknown: the caller closed the connection first',
      ),
  })
  .meta({ title: 'Audit event of Formgate' });

export type AuditEvent = z.output<typeof auditEvent> & { action: AuditAction };

const auditLogs = new WeakMap<Logger, Logger>();

/** Returns the logger for lines with an audit event. It writes them even if LOG_LEVEL suppresses other info lines. */
export function auditLog(log: Logger): Logger {
  if (log.isLevelEnabled('info') || log.level === 'silent') return log;
  const known = auditLogs.get(log);
  if (known) return known;
  const created = log.child({}, { level: 'info' });
  auditLogs.set(log, created);
  return created;
}

export interface ServiceAction {
  action: AuditAction;
  /** Who performed the action: the name of a process or a command, or `identity-provider`. */
  by: string;
  /** By default, `service`. */
  kind?: 'service' | 'command';
  tenant?: string | undefined;
  id: string;
}

/** Returns the event of a successful action that no request caused. */
export function serviceEvent({ action, by, kind = 'service', tenant, id }: ServiceAction): AuditEvent {
  const isProvider = by === 'identity-provider';
  return {
    action,
    actor: isProvider ? { kind: by } : { kind, id: by },
    ...(tenant !== undefined && { tenant }),
    object: { type: auditActions[action].object, id },
    outcome: 'succeeded',
  };
}
