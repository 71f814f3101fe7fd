// Gives a form its subscriber at the notification service, for the first code that is sent before the dispatcher has done it.
// The form's URN is the user id, so whoever comes first, there is one subscriber for each form.
import type { Notifications } from '../../platform/notifications.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { Urns } from '../../service/urn.ts';
import type { Form } from '../forms/form.ts';
import { subscriptionOf } from '../notices/notification-type.ts';

/** Rows stay in the outbox for days after their delivery. */
const suppressedSql = `
SELECT FROM outbox WHERE form_id = $1 AND kind = 'subscribe' AND facts ? 'noticeSuppressed'`;

export interface SubscribersOptions {
  pool: SharedPool;
  notifications: Pick<Notifications, 'subscribe'>;
  urns: Urns;
}

/** The id of the form's subscriber. A form that was deleted meanwhile still has its `subscribe` row, which sees to it. */
export function createSubscribers({ pool, notifications, urns }: SubscribersOptions) {
  return async function ensureSubscriber(form: Form, traceparent: string | undefined): Promise<string> {
    const { id, tenantId } = form;
    const claim = { tenant: tenantId, member: id };
    const { rowCount } = await pool.query(claim, suppressedSql, [id]);
    const request = subscriptionOf({ ...form, noticeSuppressed: rowCount === 1 }, urns);
    const { subscriberId } = await notifications.subscribe({ ...request, traceparent });
    const sql = 'UPDATE forms SET subscriber_id = $2 WHERE id = $1 AND subscriber_id IS NULL';
    await pool.query(claim, sql, [id, subscriberId]);
    return subscriberId;
  };
}
