// The route of the event service. A 200 means that the event and its routing job are stored. A second event with the
// same `context.idempotencyKey` gets 200 and changes nothing.
import { role } from '../../service/auth/bearer-guards.ts';
import type { Caller, Tenants } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import { tenantKey } from '../tenant-key.ts';
import { eventBody, eventQuery } from './schema.ts';
import type { EventStore } from './store.ts';

export interface EventRouteOptions {
  bearer: Guard;
  tenants: Pick<Tenants, 'byId'>;
  store: Pick<EventStore, 'accept'>;
  clock: Clock;
  /** Returns the JSON text of an event's payload schema. Undefined if the event has no definition. */
  payloadSchema(tenant: string, event: { namespace: string; name: string }): Promise<string | undefined>;
  /** Checks a payload against the JSON text of a JSON Schema. */
  validate(
    tenant: string,
    schema: string,
    value: unknown,
  ): Promise<{ valid: true } | { valid: false; pointer: string; detail: string }>;
}

export function eventRoutes(options: EventRouteOptions): Route[] {
  const { bearer, store, clock } = options;
  return [
    route({
      method: 'post',
      path: '/event/v1/events',
      audit: 'event.send',
      summary: 'Sends an event',
      guards: [bearer, role('event-sender')],
      query: eventQuery,
      body: eventBody,
      answers: {
        200: { description: 'The event is stored, now or by an earlier request', textType: 'text/plain' },
        400: { description: 'The tenant is missing, or the body or payload is invalid' },
        401: { description: 'No valid bearer' },
        403: { description: 'The caller lacks the role' },
      },
      async handle({ query, body }, _request, response) {
        const urn = await senderTenant(callerOf(response), query.tenantId ?? body.tenantId, options.tenants);
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
        await store.accept(
          { tenant, namespace, name, occurred, correlationId, context: body.context ?? {}, payload },
          clock(),
        );
        response.type('text/plain').send('OK');
      },
    }),
  ];
}

/**
 * Returns the URN of the sender's tenant. A core sender must name the tenant. For other senders, `named` is ignored,
 * because they send for their own tenant.
 */
async function senderTenant(caller: Caller, named: unknown, tenants: Pick<Tenants, 'byId'>): Promise<string> {
  if (caller.tenant) return caller.tenant.id;
  if (named === undefined || named === null)
    throw invalidRequest([{ pointer: '/tenantId', detail: 'is required of a core sender' }]);
  const tenant = typeof named === 'string' ? await tenants.byId(named) : undefined;
  if (!tenant) throw invalidRequest([{ pointer: '/tenantId', detail: 'names no tenant' }]);
  return tenant.id;
}
