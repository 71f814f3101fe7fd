// Tests the dates on which a form will be locked and deleted, as administrators and applicants see them.
import { describe, expect, it } from 'vitest';
import type { Form } from '../forms/form.ts';
import { createExpiryDates, type FindPolicy } from './dates.ts';

const day = 86_400_000;
const accessed = new Date('2026-03-01T08:00:00.000Z');
const locked = new Date('2026-03-10T08:00:00.000Z');
const later = (from: Date, days: number) => new Date(from.getTime() + days * day);

const form = (changes: Partial<Form> = {}): Form => ({
  ...{ id: '0198b8a0-0000-7000-8000-000000000001', tenantId: 'urn:tenant', definitionId: 'permit', status: 'Draft' },
  ...{
    created: accessed,
    createdBy: { id: 'carla', name: 'Carla' },
    issuer: 'core',
    anonymousApplicant: true,
    forAnother: false,
  },
  ...{ applicant: { channels: [] }, subscriberId: null, lastAccessed: accessed, locked: null, submitted: null },
  ...{ held: false, holdReason: null, heldBy: null, revision: '1' },
  ...changes,
});

/**
 * Creates the function that computes the dates of forms of the definitions `permit` and `licence`. `asked` collects the
 * ids of the definitions that were looked up.
 */
function createDates() {
  const asked: string[] = [];
  const periods: Record<string, number> = { permit: 15, licence: 30 };
  const findPolicy: FindPolicy = async ({ tenantId, definitionId }) => {
    asked.push(definitionId);
    const days = periods[definitionId];
    if (days === undefined) return undefined;
    return {
      ...{ tenantId, definitionId },
      retention: { warnBefore: 3 * day, lockAfter: days * day, deleteAfter: 2 * days * day },
    };
  };
  return { asked, read: createExpiryDates(findPolicy) };
}

describe('the dates', () => {
  it('of a draft count from the last access: the lock, and the deletion that follows it', async () => {
    const { read } = createDates();
    expect(await read([form()])).toEqual([{ lockOn: later(accessed, 15), deleteOn: later(accessed, 45) }]);
  });

  it('of a locked form count from the lock: only the deletion', async () => {
    const { read } = createDates();
    const dates = await read([form({ status: 'Locked', locked }), form({ status: 'Locked' })]);
    expect(dates).toEqual([
      { lockOn: null, deleteOn: later(locked, 30) },
      { lockOn: null, deleteOn: null },
    ]);
  });

  it.each<[string, Partial<Form>]>([
    ['a submitted form', { status: 'Submitted' }],
    ['an archived form', { status: 'Archived' }],
    ['a draft on hold', { held: true }],
    ['a locked form on hold', { status: 'Locked', locked, held: true }],
  ])('are unset for %s, which does not expire, and its definition is not read', async (_what, changes) => {
    const { asked, read } = createDates();
    expect(await read([form(changes)])).toEqual([{ lockOn: null, deleteOn: null }]);
    expect(asked).toEqual([]);
  });

  it('are unset for a form that does not expire, even next to a draft of the same definition', async () => {
    const { read } = createDates();
    const dates = await read([form(), form({ held: true }), form({ status: 'Submitted' })]);
    expect(dates.slice(1)).toEqual([
      { lockOn: null, deleteOn: null },
      { lockOn: null, deleteOn: null },
    ]);
  });

  it('are unset if the definition cannot be used', async () => {
    const { read } = createDates();
    expect(await read([form({ definitionId: 'invalid' })])).toEqual([{ lockOn: null, deleteOn: null }]);
  });

  it('of a list keep its order, and each definition is read once', async () => {
    const { asked, read } = createDates();
    const dates = await read([form(), form({ definitionId: 'licence' }), form({ lastAccessed: later(accessed, 1) })]);
    expect(dates.map(({ lockOn }) => lockOn)).toEqual([later(accessed, 15), later(accessed, 30), later(accessed, 16)]);
    expect(asked).toEqual(['permit', 'licence']);
  });
});
