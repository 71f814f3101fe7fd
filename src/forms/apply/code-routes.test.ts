// Tests which browser can use a code if requests of one browser overlap, or while a key is being rotated. Also tests
// which failed sends count towards the limits. The form service's responses are scripted; claimed codes are stored in a
// real Postgres.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createRateLimits } from '../../service/limits/rate-limit.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { formMigrations } from '../expiry/migrations.ts';
import { CallOutcomeUnknown, UnsentCall } from './api.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { sendCode, useCode } from './code-routes.ts';
import { createApplyHashes } from './hashes.ts';
import { createApplyStore } from './store.ts';

const now = new Date('2026-11-22T10:00:00Z');
let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  ({ pool } = database);
});
afterAll(() => database.drop());

const key = (name: string, byte: number) => `${name}:${Buffer.alloc(32, byte).toString('base64')}`;
const [older, newer] = [key('older', 7), key('newer', 8)];

/**
 * Returns a function that enters one code of one form. Its argument `call` replaces the call to the form service.
 * `ring` is the key ring of the pod.
 */
function codeEntry() {
  const clock = () => now;
  const limits = createRateLimits({ clock, log: captureLog().log, metrics: createMetrics() });
  const options = {
    store: createApplyStore(unsharedPool(pool)),
    wrongCodes: limits.local({ name: 'wrong-codes', most: 5, window: 3_600_000 }),
    clock,
  };
  const form = { formId: randomUUID(), tenantId: 'urn:example:tenants/demo' };
  return (browser: string, call: () => Promise<unknown>, ring = older) => {
    const hashes = createApplyHashes(createKeyRing(ring));
    return useCode({ ...options, hashes }, form, { code: 'ABCDEF', browser }, call);
  };
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

describe('while the pods have different key rings', () => {
  const rings = [older, `${older},${newer}`, `${newer},${older}`, newer];
  const steps = rings.slice(1).map((ring, step) => [rings[step] ?? '', ring] as const);

  it.each(steps)('a code still opens the form in one browser only (%#)', async (before, after) => {
    for (const [one, other] of [
      [before, after],
      [after, before],
    ] as const) {
      const enter = codeEntry();
      await enter('first', accepted, one);
      await expect(enter('second', accepted, other)).rejects.toMatchObject({ slug: 'invalid-code' });
      // The first browser may repeat its request at either pod.
      await enter('first', accepted, other);
      await enter('first', accepted, one);
    }
  });

  it.each(steps)('concurrent requests of two browsers at two pods let one in (%#)', async (before, after) => {
    const enter = codeEntry();
    const results = await Promise.allSettled([enter('first', accepted, before), enter('second', accepted, after)]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('a code can be entered at another pod after the form service did not respond', async () => {
    const enter = codeEntry();
    await expect(enter('first', timedOut, `${older},${newer}`)).rejects.toMatchObject({ slug: 'dependency-timeout' });
    await enter('second', accepted, `${newer},${older}`);
  });
});

describe('a call that sends a code', () => {
  /** Sends two codes for one form. The first call of the form service fails with this error. */
  async function sendTwice(error: unknown): Promise<{ calls: number; second: unknown }> {
    const limits = createRateLimits({ clock: () => now, log: captureLog().log, metrics: createMetrics() });
    const limit = (name: string, most: number, window: number) => limits.local({ name, most, window });
    const sends = { minute: limit('minute', 1, 60_000), hour: limit('hour', 5, 3_600_000) };
    let calls = 0;
    const api = {
      async call() {
        calls += 1;
        if (calls === 1) throw error;
        return { status: 202, etag: undefined, text: '{}' };
      },
    };
    const form = { formId: randomUUID(), tenantId: 'urn:example:tenants/demo', context: {} as HttpResponse };
    const send = () => sendCode({ api, sends } as unknown as ApplyRoutesOptions, form);
    await expect(send()).rejects.toBe(error);
    const second = await send().catch((problem: unknown) => problem);
    return { calls, second };
  }

  it.each([
    ['the form service did not respond', new CallOutcomeUnknown('dependency-timeout')],
    ['the connection broke', new CallOutcomeUnknown('dependency-failed')],
    ['the notification service did not respond', new Problem('dependency-timeout')],
  ])('counts if the code may have been sent, because %s', async (_why, error) => {
    expect(await sendTwice(error)).toMatchObject({ calls: 1, second: { slug: 'too-many-requests' } });
  });

  it.each([
    ['the form service was busy', new Problem('busy')],
    ['the form service was not reached', new UnsentCall('dependency-failed')],
    ['the identity provider did not respond', new PlatformError('identity-provider', 'timeout')],
  ])('does not count if no code was sent, because %s', async (_why, error) => {
    expect(await sendTwice(error)).toEqual({ calls: 2, second: undefined });
  });

  it('counts for the minute only if the form service could not have it delivered', async () => {
    const { calls, second } = await sendTwice(new Problem('dependency-failed'));
    expect({ calls, second }).toMatchObject({ calls: 1, second: { slug: 'too-many-requests' } });
  });
});

it('the limits of the form service do not reveal whether a form exists', async () => {
  let moment = Date.parse('2026-11-22T10:00:59Z');
  /** Requests two codes from one pod, one from another pod, and two seconds later one from the first pod again. */
  async function sendThrice(exists: boolean): Promise<unknown[]> {
    moment = Date.parse('2026-11-22T10:00:59Z');
    const pods = [1, 2].map(() => {
      const limits = createRateLimits({
        clock: () => new Date(moment),
        log: captureLog().log,
        metrics: createMetrics(),
      });
      const limit = (name: string, most: number, window: number) => limits.local({ name, most, window });
      return { minute: limit('minute', 1, 60_000), hour: limit('hour', 5, 3_600_000) };
    });
    const form = { formId: randomUUID(), tenantId: 'urn:example:tenants/demo', context: {} as HttpResponse };
    let calls = 0;
    const api = {
      async call() {
        calls += 1;
        if (!exists) throw new Problem('not-found');
        if (calls > 1) throw new Problem('too-many-requests');
        return { status: 202, etag: undefined, text: '{}' };
      },
    };
    const send = (sends: object | undefined) =>
      sendCode({ api, sends } as unknown as ApplyRoutesOptions, form).catch((error: Problem) => error.slug);
    const results = [await send(pods[0]), await send(pods[0]), await send(pods[1])];
    moment += 2_000;
    return [...results, await send(pods[0])];
  }
  const existing = await sendThrice(true);
  expect(existing).toEqual([undefined, 'too-many-requests', undefined, undefined]);
  expect(await sendThrice(false)).toEqual(existing);
});
