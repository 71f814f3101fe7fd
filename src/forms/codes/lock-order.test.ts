// Checks on a real Postgres that concurrent operations on one form do not deadlock.
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { Problem } from '../../service/http/problem.ts';
import { type SharedPool, unsharedPool } from '../../service/postgres/shared-pool.ts';
import type { MoveOperation } from '../forms/catalogue.ts';
import { createCreationStore } from '../forms/creation-store.ts';
import { createDataStore } from '../forms/data-store.ts';
import { createClaim } from '../forms/idempotency.ts';
import { createFormStore, type FormStore } from '../forms/store.ts';
import { migrationsDirectory } from '../start.ts';
import { createCodeHashes } from './code.ts';
import { type CodeAttempt, type CodeStore, createCodeStore } from './store.ts';

let database: TestDatabase;
let pool: pg.Pool;
let shared: SharedPool;
let codes: CodeStore;
let forms: FormStore;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  shared = unsharedPool(pool);
  codes = createCodeStore(shared);
  forms = createFormStore(shared);
});
afterAll(() => database.drop());

const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
const actor = { id: 'subject-1', name: 'Ada' };
const account = { issuer: 'https://access.example.org/auth/realms/demo', subject: 'subject-1' };
const now = new Date('2026-08-20T17:00:00Z');
const hashes = createCodeHashes('a key of tests');

async function draft(address: string): Promise<string> {
  const id = randomUUID();
  const channels = [{ channel: 'email' as const, address }];
  const form = { id, tenantId, definitionId: 'permit', created: now, createdBy: actor, issuer: account.issuer };
  const kinds = {
    status: 'Draft' as const,
    anonymousApplicant: true,
    forAnother: false,
    onePerApplicant: false,
    noticeHashes: [hashOf(address)],
    isBudgeted: false,
    addressHashes: [],
  };
  await createCreationStore(shared).create({ ...form, ...kinds, applicant: { channels } }, undefined);
  return id;
}

const hashOf = (address: string) => hashes.address(tenantId, { channel: 'email', address });

function tryOf(formId: string, address: string, code: string): CodeAttempt {
  return { tenantId, formId, addressHash: hashOf(address), codeHash: hashes.code(formId, code), ...account, now };
}

async function attempt(formId: string, address: string, isRight: boolean): Promise<void> {
  const one = tryOf(formId, address, randomUUID());
  const reservation = await codes.reserveAttempt(one);
  if (reservation.outcome !== 'reserved') return;
  await (isRight ? codes.settleRight(reservation.id, one) : codes.settleWrong(reservation.id, one));
}

/**
 * Returns the SQLSTATE of the error with which `work` failed. Returns undefined if `work` succeeded, or failed only
 * because the form was deleted.
 */
async function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Problem && error.slug === 'gone') return undefined;
      return String((error as { code?: string }).code ?? error);
    },
  );
}

const by = { role: 'admin', account: '3f9ac0d21e77' };
const move = (operation: MoveOperation) => (formId: string) => {
  const claim = createClaim('a key of tests', formId, { tenantId, ...account, route: 'submit', body: {}, now });
  const record = operation === 'submit' ? { ...claim, response: { id: formId } } : undefined;
  return forms.move({ tenantId, formId, actor, now, by, operation, record });
};

const operations: Record<string, (formId: string, address: string) => Promise<unknown>> = {
  save: (formId) =>
    createDataStore(shared).save({
      ...{ tenantId, formId, now, data: '{"a":1}', files: undefined, revisions: undefined, anonymousOnly: true },
      session: account,
    }),
  submit: move('submit'),
  unlock: move('unlock'),
  'to-draft': move('to-draft'),
  'send-code': (formId, address) => codes.reserveSend({ tenantId, formId, addressHash: hashOf(address) }, now),
  'the record of a sent code': (formId) => forms.recordSent({ tenantId, formId, now, by }),
  'a wrong code': (formId, address) => attempt(formId, address, false),
  'a right code': (formId, address) => attempt(formId, address, true),
  delete: (formId) => forms.remove({ tenantId, formId, actor, now, statuses: ['Draft', 'Locked', 'Submitted'] }),
  lock: (formId) => pool.query("UPDATE forms SET status = 'Locked', locked = $2 WHERE id = $1", [formId, now]),
  hold: (formId) => forms.setHeld({ tenantId, formId, now, actor, by, hold: {} }),
  create: (_formId, address) => draft(address),
};

describe('a delete concurrent with the fifth wrong code', () => {
  it('causes no deadlock', async () => {
    const race = async () => {
      const address = `${randomUUID()}@example.org`;
      const formId = await draft(address);
      await attempt(formId, address, true);
      for (let wrong = 0; wrong < 4; wrong += 1) await attempt(formId, address, false);
      const fifth = tryOf(formId, address, 'fifth');
      const reservation = await codes.reserveAttempt(fifth);
      if (reservation.outcome !== 'reserved') throw new Error(reservation.outcome);
      const remove = operations.delete?.(formId, address) ?? Promise.resolve();
      return Promise.all([failureOf(codes.settleWrong(reservation.id, fifth)), failureOf(remove)]);
    };
    const failures: (string | undefined)[] = [];
    for (let runs = 0; runs < 80; runs += 8)
      failures.push(...(await Promise.all(Array.from({ length: 8 }, race))).flat());
    expect(failures.filter((failure) => failure !== undefined)).toEqual([]);
  });
});

describe('concurrent operations on one form', () => {
  it('cause no deadlock in any combination', async () => {
    const names = fc.constantFrom(...Object.keys(operations));
    await fc.assert(
      fc.asyncProperty(fc.array(names, { minLength: 2, maxLength: 6 }), names, async (together, before) => {
        const address = `${randomUUID()}@example.org`;
        const formId = await draft(address);
        for (const name of ['a right code', 'a wrong code', before]) await operations[name]?.(formId, address);
        const work = together.map((name) => operations[name]?.(formId, address) ?? Promise.resolve());
        expect(await Promise.all(work.map(failureOf))).toEqual(work.map(() => undefined));
      }),
      { numRuns: 40 },
    );
  });

  it('cause no deadlock in any pair', async () => {
    const names = Object.keys(operations);
    for (const one of names)
      for (const other of names.slice(names.indexOf(one))) {
        const races = Array.from({ length: 2 }, async () => {
          const address = `${randomUUID()}@example.org`;
          const formId = await draft(address);
          for (const kind of [true, false, false]) await attempt(formId, address, kind);
          const pair = [operations[one]?.(formId, address), operations[other]?.(formId, address)];
          return Promise.all(pair.map((work) => failureOf(work ?? Promise.resolve())));
        });
        expect([one, other, ...(await Promise.all(races)).flat().filter(Boolean)]).toEqual([one, other]);
      }
  });
});
