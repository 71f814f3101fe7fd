// Generates docs/audit.md and docs/audit-event.schema.json from the catalogue of audit events and the route tables.
import { z } from 'zod';
import type { Route } from '../../src/service/http/http-app.ts';
import { auditEvent } from '../../src/service/operations/audit.ts';
import { type AuditAction, type AuditObjectType, auditActions } from '../../src/service/operations/audit-actions.ts';
import type { RoutedProcess } from './routes-reference.ts';

/**
 * True for a route that may change data, and for a GET route that must be audited for another reason, such as reading
 * form data.
 */
export function needsAudit({ method, getHasEffects }: Pick<Route, 'method' | 'getHasEffects'>): boolean {
  return method !== 'get' || getHasEffects === true;
}

/** Returns the actions that requests for a route may perform, or the reason why it has no event. */
export function auditOf({ audit }: Pick<Route, 'audit'>): AuditAction[] | string | undefined {
  if (audit === undefined || typeof audit === 'string') return audit && [audit];
  return 'unaudited' in audit ? audit.unaudited : [...audit.actions];
}

/** The identifier in an event for each type of object. */
const objectIds: Record<AuditObjectType, string> = {
  form: 'the form’s UUID',
  'quarantine-item': 'the item’s UUID',
  register: 'the register’s name',
  client: 'the client’s id',
  session: 'the session’s handle, as in `GET /token-handler/v1/sessions`',
  configuration: 'namespace and name, such as `form-service/permit` for a form definition',
  event: 'none',
  subscription: 'the id of the subscriber',
  subscriber: 'the id of the subscriber',
};

const introduction = `# Audit events

An audit event says who did what to which object. It is the field \`audit\` of a log line; select these lines by that field,
and keep them for as long as your rules demand. Lines with an event are written at every \`LOG_LEVEL\`. Formgate stores no
audit trail of its own: the history of a form (\`GET /form/v1/forms/{formId}/history\`) is for administrators. If your log
collector stalls, a process drops lines beyond 16 MiB, also lines with an event (\`formgate_log_lines_dropped_total\`).

Most events are in the log line of the request, whose other fields give its time, status, request id and trace id. The
JSON Schema is [audit-event.schema.json](audit-event.schema.json). An event holds ids only: no names, addresses, codes,
tokens or form data. The ids of accounts and persons are their subjects at the identity provider.

\`\`\`json
{"level":"info","time":"2026-11-23T09:12:44.107Z","name":"form-service","requestId":"7e5b…","traceId":"7e5b…","method":"DELETE",
"route":"/form/v1/forms/:formId","status":204,"ms":8.1,"tenant":"urn:…","caller":"3f2a…","formId":"0199…",
"audit":{"action":"form.delete","actor":{"kind":"account","id":"3f2a…","realm":"demo","clientId":"formgate-console"},
"tenant":"urn:…","object":{"type":"form","id":"0199…"},"outcome":"succeeded"},"msg":"request"}
\`\`\`

- **outcome**: \`succeeded\`; \`refused\` if the caller may not do this or the request is invalid (4xx); \`failed\` if a service
  failed (5xx); \`unknown\` if the caller closed the connection before the response.
- **actor.kind**: \`account\` (a bearer token), \`person\` (a session of the token handler), \`browser\` (nobody is signed in),
  \`identity-provider\`, \`service\` (a process of Formgate in the background), or \`command\` (a command of the image that an
  operator has run). An applicant without an account acts through the intake application: the actor is its service account.
- The events of a command are on its standard output. Kubernetes collects the output of a Job, but not that of
  \`kubectl exec\`, which you must keep yourself. The audit log of the Kubernetes API says which user started either.
- Requests of unknown callers that a guard refuses have no event, because anybody can send them. The log line of such a request
  records what is known about it. The same holds for requests that CSRF protection refuses: the browser, not the person, sent them.
- The list of sessions has an event if an administrator reads it. Its \`object.ids\` are the sessions of the page.
- A list of forms has an event if it contains form data (\`includeData\`) or is searched by an address
  (\`X-Applicant-Address\`). Its \`object.ids\` are the forms of the page; the address is not in the event. A search that
  returns form data is \`form.read-data\`.
- The reconciler locks and deletes drafts in batches, without an event for each form. The event service gets
  \`form-locked\` and \`form-deleted\` for each, and the form's history shows the lock.
- A form definition is a configuration of the tenant. The service that stores it records its changes: the platform server,
  or your platform's configuration service.

This page is written by \`npm run docs\` from the catalogue of actions and the route tables; a test fails if it differs.`;

/** Returns the text of docs/audit.md for `processes`. */
export function auditReference(processes: readonly RoutedProcess[]): string {
  const routes = processes.flatMap((process) => process.routes);
  const sections = [
    introduction,
    `## Actions\n\n${actionTable(routes)}`,
    `## Objects\n\n${objectTable()}`,
    `## Routes without events\n\nThese routes change something, but need no event of their own.\n\n${unauditedTable(routes)}`,
  ];
  return `${sections.join('\n\n')}\n`;
}

export function auditSchema(): string {
  return `${JSON.stringify(z.toJSONSchema(auditEvent), undefined, 2)}\n`;
}

function actionTable(routes: readonly Route[]): string {
  const rows = Object.entries(auditActions).map(([action, { object, meaning }]) => {
    const by = routes.filter((route) => (auditOf(route) as string[] | undefined)?.includes(action)).map(nameOf);
    const shown = by.length > 0 ? by.filter(isFirst).join(', ') : 'in the background';
    return `| \`${action}\` | ${object} | ${meaning} | ${shown} |`;
  });
  return ['| action | object | meaning | by |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

/** False for a path without a version. The token handler serves such paths in addition to the paths with a version. */
const isFirst = (name: string) => !/`\w+ \/token-handler\/(?!v1)/.test(name);

const nameOf = ({ method, path }: Route) => `\`${method === 'all' ? 'any' : method.toUpperCase()} ${path}\``;

function objectTable(): string {
  const rows = Object.entries(objectIds).map(([type, id]) => `| ${type} | ${id} |`);
  return ['| type | id |', '| --- | --- |', ...rows].join('\n');
}

function unauditedTable(routes: readonly Route[]): string {
  const rows = routes.flatMap((route) => {
    const reason = auditOf(route);
    return typeof reason === 'string' && isFirst(nameOf(route)) ? [`| ${nameOf(route)} | ${reason} |`] : [];
  });
  return ['| route | why |', '| --- | --- |', ...rows].join('\n');
}
