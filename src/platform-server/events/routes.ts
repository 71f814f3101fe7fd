// The route of the event service. A 200 means that the event and its routing job are stored. A second event with the
// same `context.idempotencyKey` gets 200 and changes nothing.
import { role } from '../../service/auth/bearer-guards.ts';
import type { Tenants } from '../../service/auth/identity.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf, queryOf } from '../../service/http/request-context.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import type { TenantCode } from '../tenant-code.ts';
import { tenantKey } from '../tenant-key.ts';
import type { NewEvent } from './event.ts';
import { eventBody, eventQuery } from './schema.ts';

export interface EventRouteOptions {
  bearer: Guard;
  tenants: Pick<Tenants, 'byId'>;
  /** Stores an event. Throws Problem `busy` if its tenant has too many waiting events and notices. */
  accept(event: NewEvent): Promise<void>;
  /** Returns the JSON text of an event's payload schema. Undefined if the event has no definition. */
  payloadSchema(tenant: string, event: { namespace: string; name: string }): Promise<string | undefined>;
  validate: TenantCode['validate'];
}

export function eventRoutes(options: EventRouteOptions): Route[] {
  const { bearer, accept } = options;
  return [
    route({
      method: 'post',
      path: '/event/v1/events',
      audit: 'event.send',
      summary: 'Sends an event',
      guards: [bearer, role('event-sender'), senderTenant(options.tenants)],
      query: eventQuery,
      body: eventBody,
      responses: {
        200: { description: 'The event is stored, now or by an earlier request', textType: 'text/plain' },
        400: { description: 'The tenant is missing, or the body or payload is invalid' },
        401: { description: 'No valid bearer' },
        403: { description: 'The caller lacks the role' },
        503: {
          description: 'Too many events and notices of the tenant are waiting',
          headers: { 'Retry-After': 'Seconds' },
        },
      },
      async handle({ query, body }, _request, response) {
        const urn = response.locals.tenant?.id ?? (await namedTenant(query.tenantId ?? body.tenantId, options.tenants));
        const tenant = tenantKey(urn);
        noteAudit(response, { tenant: urn });
        const schema = await options.payloadSchema(tenant, body);
        const checked = schema === undefined ? undefined : await options.validate(tenant, schema, body.payload);
        if (checked?.valid === false) {
          const errors = [{ pointer: `/payload${checked.pointer}`, detail: checked.detail }];
          const detail = `Value not valid for event '${body.namespace}:${body.name}': ${checked.detail}`;
          throw new Problem('invalid-request', detail, { errors });
        }
        const { namespace, name, timestamp: occurred, payload } = body;
        const correlationId = body.correlationId ?? undefined;
        await accept({ tenant, namespace, name, occurred, correlationId, context: body.context ?? {}, payload });
        response.type('text/plain').send('OK');
      },
    }),
  ];
}

/**
 * Stores the sender's tenant, so that a large event uses the share of its tenant before its body is read. A core sender
 * names the tenant in the query, or in the body: then the tenant is not known yet. For other senders, a named tenant is
 * ignored, because they send for their own tenant.
 */
function senderTenant(tenants: Pick<Tenants, 'byId'>): Guard {
  return {
    name: 'senderTenant',
    async check(request, response) {
      const own = callerOf(response).tenant;
      const { tenantId } = queryOf(request);
      const tenant = own ?? (typeof tenantId === 'string' ? await tenants.byId(tenantId) : undefined);
      if (tenant) response.locals.tenant = tenant;
    },
  };
}

/** Returns the URN of the tenant that a core sender names in the body, or in the query if no tenant has that URN. */
async function namedTenant(named: unknown, tenants: Pick<Tenants, 'byId'>): Promise<string> {
  if (named === undefined || named === null)
    throw invalidRequest([{ pointer: '/tenantId', detail: 'is required if the sender has a core account' }]);
  const tenant = typeof named === 'string' ? await tenants.byId(named) : undefined;
  if (!tenant) throw invalidRequest([{ pointer: '/tenantId', detail: 'names no tenant' }]);
  return tenant.id;
}
