// Finds forms with more than one subscriber at the notification service, and removes the additional subscribers. The
// applicant of such a form gets every notice twice. A second subscriber exists if a subscribe request timed out and the
// notification service still processed it later.
import type { Notifications } from '../../platform/notifications.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { Urns } from '../../service/urn.ts';
import { notificationTypeId } from '../notices/notification-type.ts';

export interface SubscriberCheck {
  formId: string;
  tenantId: string;
  /** The subscriber that the form keeps. */
  subscriberId: string;
}

export interface CheckOptions {
  notifications: Pick<Notifications, 'subscribersOf' | 'removeSubscriber'>;
  urns: Pick<Urns, 'form'>;
}

/** Returns forms that may have more than one subscriber. The forms that have waited longest come first. */
export async function dueChecks(db: Queryable, now: Date, limit: number): Promise<SubscriberCheck[]> {
  const { rows } = await db.query<SubscriberCheck>(
    `SELECT f.id AS "formId", f.tenant_id AS "tenantId", f.subscriber_id AS "subscriberId"
     FROM subscriber_checks c JOIN forms f ON f.id = c.form_id
     WHERE c.due <= $1 AND f.subscriber_id IS NOT NULL ORDER BY c.due LIMIT $2`,
    [now, limit],
  );
  return rows;
}

/**
 * Removes the form's other subscribers, and returns their number. Removes nothing if the notification service does not
 * know the form's own subscriber. Throws PlatformError; its kind is `denied` if the account lacks the role
 * subscription-admin.
 */
export async function removeOthers(check: SubscriberCheck, { notifications, urns }: CheckOptions): Promise<number> {
  const { formId, tenantId, subscriberId } = check;
  const found = await notifications.subscribersOf(tenantId, notificationTypeId, urns.form(formId));
  const others = found.includes(subscriberId) ? found.filter((id) => id !== subscriberId) : [];
  for (const id of others) await notifications.removeSubscriber(tenantId, id);
  return others.length;
}

/** Postpones the checks of these forms, so that the checks of other forms come first. */
export async function postponeChecks(db: Queryable, formIds: readonly string[], until: Date): Promise<void> {
  await db.query('UPDATE subscriber_checks SET due = $2 WHERE form_id = ANY ($1)', [formIds, until]);
}

export async function settleChecks(db: Queryable, formIds: readonly string[]): Promise<void> {
  await db.query('DELETE FROM subscriber_checks WHERE form_id = ANY ($1)', [formIds]);
}
