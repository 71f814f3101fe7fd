// Tests that somebody who creates many drafts for the address of a stranger cannot have the expiry flood it with mails,
// and that applicants with a few drafts still get a notice about each of them.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { day, type ExpiryWorld, startExpiryWorld } from '../../../test/support/expiry.ts';
import { createBatches } from '../../../test/support/expiry-batch.ts';

let world: ExpiryWorld;
let batches: ReturnType<typeof createBatches>;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());
beforeEach(() => {
  batches = createBatches(world);
});

/** Adds forms of one applicant with this age. */
async function addForms(count: number, address: Buffer, age: number): Promise<string[]> {
  const ids: string[] = [];
  for (let form = 0; form < count; form += 1) ids.push(await batches.add({ age }));
  await world.pool.query('INSERT INTO applicant_addresses SELECT unnest($1::uuid[]), $2', [ids, address]);
  return ids;
}

/** Returns how many events of these forms have a notice, and how many do not. */
async function noticesOf(ids: string[], kind: string) {
  const { rows } = await world.pool.query<{ due: number; suppressed: number }>(
    `SELECT count(*) FILTER (WHERE NOT facts ? 'noticeSuppressed')::int AS due,
      count(*) FILTER (WHERE facts ? 'noticeSuppressed')::int AS suppressed
    FROM outbox WHERE form_id = ANY ($1) AND kind = $2`,
    [ids, kind],
  );
  return rows[0];
}

describe('an address for which somebody has created 250 drafts', () => {
  it('gets 20 warnings, 20 notices of locks and 20 of deletions, and every event is written', async () => {
    const [victim, honest] = [randomBytes(16), randomBytes(16)];
    const [ids, own] = [await addForms(250, victim, 13 * day), await addForms(10, honest, 13 * day)];
    expect(await batches.runAll('warn', 40)).toMatchObject({ warned: 260 });
    expect(await noticesOf(ids, 'form-expiring')).toEqual({ due: 20, suppressed: 230 });
    expect(await noticesOf(own, 'form-expiring')).toEqual({ due: 10, suppressed: 0 });
    world.advance(3 * day);
    expect(await batches.runAll('lock', 40)).toMatchObject({ locked: 260 });
    expect(await noticesOf(ids, 'form-locked')).toEqual({ due: 20, suppressed: 230 });
    expect(await noticesOf(own, 'form-locked')).toEqual({ due: 10, suppressed: 0 });
    await world.pool.query('UPDATE outbox SET accepted = created');
    world.advance(21 * day);
    expect(await batches.runAll('delete', 40)).toMatchObject({ deleted: 260 });
    expect(await noticesOf(ids, 'form-deleted')).toEqual({ due: 20, suppressed: 230 });
    expect(await noticesOf(own, 'form-deleted')).toEqual({ due: 10, suppressed: 0 });
  });

  it('gets 20 warnings also if the drafts were opened in another order than that of their creation', async () => {
    const victim = randomBytes(16);
    const ids = await addForms(500, victim, 13 * day);
    // The batches process the drafts in the order in which they were opened.
    await world.pool.query(
      `UPDATE forms SET last_accessed = last_accessed + (row * 7919 % 500) * interval '1 second'
      FROM (SELECT id, row_number() OVER (ORDER BY id) AS row FROM unnest($1::uuid[]) AS id) AS numbered
      WHERE forms.id = numbered.id`,
      [ids],
    );
    expect(await batches.runAll('warn', 10)).toMatchObject({ warned: 500 });
    expect(await noticesOf(ids, 'form-expiring')).toEqual({ due: 20, suppressed: 480 });
    world.advance(3 * day);
    expect(await batches.runAll('lock', 10)).toMatchObject({ locked: 500 });
    expect(await noticesOf(ids, 'form-locked')).toEqual({ due: 20, suppressed: 480 });
  });

  it('gets notices about further drafts an hour later', async () => {
    const address = randomBytes(16);
    await addForms(30, address, 13 * day);
    await batches.runAll('warn', 40);
    world.advance(3_600_000);
    const later = await addForms(5, address, 13 * day);
    await batches.runAll('warn', 40);
    expect(await noticesOf(later, 'form-expiring')).toEqual({ due: 5, suppressed: 0 });
  });
});
