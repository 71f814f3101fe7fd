// Tests which browser can use a code if requests of one browser overlap. The form service's responses are scripted;
// claimed codes are stored in a real Postgres.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { Problem } from '../../service/http/problem.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createRateLimits } from '../../service/limits/rate-limit.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { formMigrations } from '../expiry/migrations.ts';
import { useCode } from './code-routes.ts';
import { createApplyHashes } from './hashes.ts';
import { createApplyStore } from './store.ts';

let pool: pg.Pool;
let drop: () => Promise<void>;
beforeAll(async () => {
  const database = await createTestDatabase(formMigrations.directory);
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
  drop = database.drop;
});
afterAll(async () => {
  await pool.end();
  await drop();
});

/** Returns a function that enters one code of one form. Its argument `call` stands for the call of the form service. */
function codeEntry() {
  const clock = () => new Date('2026-11-22T10:00:00Z');
  const limits = createRateLimits({ clock, log: captureLog().log, metrics: createMetrics() });
  const options = {
    store: createApplyStore(unsharedPool(pool)),
    hashes: createApplyHashes(createKeyRing(`tests:${Buffer.alloc(32, 7).toString('base64')}`)),
    wrongCodes: limits.local({ name: 'wrong-codes', most: 5, window: 3_600_000 }),
    clock,
  };
  const form = { formId: randomUUID(), tenantId: 'urn:example:tenants/demo' };
  return (browser: string, call: () => Promise<unknown>) => useCode(options, form, { code: 'ABCDEF', browser }, call);
}

const accepted = async () => undefined;
const timedOut = async () => {
  throw new Problem('dependency-timeout', 'The form service did not respond in time.');
};

it('a code lets only one browser in, even if the first browser sent it twice and one response was lost', async () => {
  const enter = codeEntry();
  const answer = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const slow = enter('first', () => {
    started.resolve();
    return answer.promise;
  });
  await started.promise;
  await expect(enter('first', timedOut)).rejects.toMatchObject({ slug: 'dependency-timeout' });
  await enter('second', accepted);
  answer.resolve();
  await expect(slow).rejects.toMatchObject({ slug: 'invalid-code' });
  await enter('second', accepted);
});

it('a code lets the browser in whose other attempt failed', async () => {
  const enter = codeEntry();
  await enter('first', async () => {
    await expect(enter('first', timedOut)).rejects.toMatchObject({ slug: 'dependency-timeout' });
  });
  await expect(enter('second', accepted)).rejects.toMatchObject({ slug: 'invalid-code' });
  await enter('first', accepted);
});

it('a code can be entered in another browser if the form service did not respond in the first one', async () => {
  const enter = codeEntry();
  await expect(enter('first', timedOut)).rejects.toMatchObject({ slug: 'dependency-timeout' });
  await enter('second', accepted);
  await expect(enter('first', accepted)).rejects.toMatchObject({ slug: 'invalid-code' });
});
