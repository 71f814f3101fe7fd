// Tests which forms are checked for a second subscriber, and which subscribers are removed.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { createUrns } from '../../service/urn.ts';
import { notificationTypeId } from '../notices/notification-type.ts';
import { formMigrations } from './migrations.ts';
import { dueChecks, removeOthers, settleChecks } from './subscriber-checks.ts';

const now = new Date('2026-03-20T10:00:00.000Z');
const ago = (milliseconds: number) => new Date(now.getTime() - milliseconds);
const urns = createUrns('urn:example');
const tenantId = urns.tenant('demo');

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await pool.query('DELETE FROM forms');
});

/** Adds a form whose check for a second subscriber is due at the given time. */
async function addCheck(due: Date, subscriberId: string | null): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
      anonymous_applicant, one_per_applicant, applicant, last_accessed, subscriber_id)
    VALUES ($1, $2, 'permit', 'Draft', $3, '{"id":"kiosk","name":"Kiosk"}', 'core', true, false, '{"channels":[]}', $3, $4)`,
    [id, tenantId, now, subscriberId],
  );
  await pool.query('INSERT INTO subscriber_checks VALUES ($1, $2)', [id, due]);
  return id;
}

describe('the checks of a run', () => {
  it('are those that are due, the oldest first, up to a limit', async () => {
    const newest = await addCheck(now, 'subscriber-3');
    const oldest = await addCheck(ago(2), 'subscriber-1');
    const middle = await addCheck(ago(1), 'subscriber-2');
    await addCheck(ago(-1), 'later');
    await addCheck(ago(3), null);
    expect(await dueChecks(pool, now, 10)).toEqual([
      { formId: oldest, tenantId, subscriberId: 'subscriber-1' },
      { formId: middle, tenantId, subscriberId: 'subscriber-2' },
      { formId: newest, tenantId, subscriberId: 'subscriber-3' },
    ]);
    expect((await dueChecks(pool, now, 2)).map(({ formId }) => formId)).toEqual([oldest, middle]);
  });

  it('are settled once, without those of other forms', async () => {
    const done = await addCheck(now, 'subscriber-1');
    const waiting = await addCheck(now, 'subscriber-2');
    await settleChecks(pool, [done]);
    expect((await dueChecks(pool, now, 10)).map(({ formId }) => formId)).toEqual([waiting]);
  });
});

describe('a form with several subscribers', () => {
  const check = { formId: randomUUID(), tenantId, subscriberId: 'own' };

  /**
   * A notification service that knows the subscribers of one form, and can refuse to remove the subscriber `refused`.
   */
  function createService(subscribers: string[], refused?: string) {
    const known = new Set(subscribers);
    return {
      known,
      async subscribersOf(tenant: string, type: string, correlationId: string) {
        const isAsked = tenant === tenantId && type === notificationTypeId && correlationId === urns.form(check.formId);
        return isAsked ? [...known] : [];
      },
      async removeSubscriber(tenant: string, id: string) {
        if (id === refused) throw new PlatformError('notifications', 'denied');
        if (tenant === tenantId) known.delete(id);
      },
    };
  }

  it('keeps its own, and the others are removed and counted', async () => {
    const notifications = createService(['second', 'own', 'third']);
    expect(await removeOthers(check, { notifications, urns })).toBe(2);
    expect([...notifications.known]).toEqual(['own']);
    expect(await removeOthers(check, { notifications, urns })).toBe(0);
  });

  it('keeps all if the service does not know its own: the others may be the only ones that get notices', async () => {
    const notifications = createService(['second', 'third']);
    expect(await removeOthers(check, { notifications, urns })).toBe(0);
    expect([...notifications.known]).toEqual(['second', 'third']);
  });

  it('is reported as failed if a subscriber cannot be removed', async () => {
    const notifications = createService(['own', 'second'], 'second');
    await expect(removeOthers(check, { notifications, urns })).rejects.toMatchObject({ kind: 'denied' });
  });
});
