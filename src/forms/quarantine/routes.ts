// Routes that list and release quarantined items. An administrator sees the items of their tenant; a core user sees
// those of all tenants.
import { role } from '../../service/auth/bearer-guards.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import type { QuarantineStore } from '../../service/quarantine/quarantine-store.ts';
import { cursorOf, tenantOrAllQuery } from '../forms/schema.ts';
import { itemOperation, itemParams, itemView, quarantineList, quarantineListQuery, releasedItem } from './schema.ts';

export interface QuarantineRoutesOptions {
  /** Accepts tokens issued for this service. */
  bearer: Guard;
  tenantOrAll: Guard;
  quarantine: Pick<QuarantineStore, 'list' | 'release'>;
  /** Called after a release, which may have made outbox rows due. */
  changed(): void;
}

const collection = '/form/v1/quarantine';

export function listQuarantineRoute({ bearer, tenantOrAll, quarantine }: QuarantineRoutesOptions): Route {
  return route({
    method: 'get',
    path: collection,
    operationId: 'listQuarantine',
    summary: 'List quarantined items, newest first',
    description: [
      'Items that cannot be processed because of their own content: a form that cannot be locked, an event that the event',
      'service refuses. They are retried after a release, and once by each new version.',
    ].join(' '),
    guards: [bearer, role('form-admin'), tenantOrAll],
    query: quarantineListQuery,
    responses: {
      200: { description: 'A page of items', schema: quarantineList },
      403: { description: 'This operation requires the role form-admin' },
    },
    async handle({ query: { kind, reason, top, after } }, _request, response) {
      const position = after && { firstSeen: after.created, id: after.id };
      const tenantId = response.locals.tenant?.id;
      const { items, next } = await quarantine.list({ tenantId, kind, reason, top, after: position });
      response.json({
        results: items.map(itemView),
        page: {
          after: after?.text ?? null,
          next: next ? cursorOf({ created: next.firstSeen, id: next.id }) : null,
          size: items.length,
        },
      });
    },
  });
}

export function releaseItemRoute({ bearer, tenantOrAll, quarantine, changed }: QuarantineRoutesOptions): Route {
  return route({
    method: 'post',
    path: `${collection}/:itemId`,
    audit: 'quarantine.release',
    operationId: 'releaseQuarantinedItem',
    summary: 'Release a quarantined item',
    description: [
      'Events are retried immediately, forms and core clients by the next run of the reconciler. `released` is false if a',
      'missing notice still cannot be written.',
    ].join(' '),
    guards: [bearer, role('form-admin'), tenantOrAll],
    params: itemParams,
    query: tenantOrAllQuery,
    body: itemOperation,
    responses: {
      200: { description: 'The item will be retried, or stays in quarantine', schema: releasedItem },
      403: { description: 'This operation requires the role form-admin' },
      404: { description: 'The tenant has no such item, or it was already released' },
    },
    async handle({ params: { itemId: id } }, _request, response) {
      const [item] = await quarantine.release({ id, tenantId: response.locals.tenant?.id });
      if (!item) throw new Problem('not-found', 'The quarantine has no such item.');
      // A core operator may release an item without naming its tenant.
      if (item.tenantId) noteAudit(response, { tenant: item.tenantId });
      changed();
      response.json({ id, released: item.released });
    },
  });
}
