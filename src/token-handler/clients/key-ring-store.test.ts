// Tests the age of the key ring's current key, and the count of secrets that are sealed with older keys, while several
// pods rotate their keys.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { growthOf, samplesOf } from '../../../test/support/metric-growth.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';

const minute = 60_000;
const day = 86_400_000;
let handler: TestTokenHandler;
let now = Date.now();
const clock = () => new Date(now);
beforeAll(async () => {
  handler = await startTestTokenHandler({ clock });
  await handler.configure({ 'permits-web': {} });
});
afterAll(() => handler.close());

const age = async (url: string) => (await samplesOf(url, 'formgate_key_ring_current_key_age_seconds'))[''];
const old = async (url: string) => (await samplesOf(url, 'formgate_key_ring_old_secrets'))[''];

async function startPod(KEY_RING: string): Promise<string> {
  const replica = await handler.startReplica({ env: { KEY_RING }, clock });
  onTestFinished(() => replica.close());
  return replica.metricsUrl;
}

it('registrations are counted by outcome', async () => {
  const registrations = (work: () => Promise<unknown>) =>
    growthOf(handler.metricsUrl, 'formgate_client_registrations_total', work);
  expect(await registrations(() => handler.register('permits-web'))).toEqual({ 'outcome="registered"': 1 });
  const token = await handler.adminToken();
  const body = { registrationToken: 'invalid' };
  const refused = () => handler.api('/clients/permits-web', { method: 'POST', token, body });
  expect(await registrations(refused)).toEqual({ 'outcome="refused"': 1 });
});

it('secrets are counted as old until the pods with a new key have encrypted them again', async () => {
  const { env, metricsUrl } = handler;
  // Each pod caches its count of old secrets for a minute.
  now += 2 * minute;
  await expect.poll(() => old(metricsUrl)).toBe(0);
  const other = await startPod(`other:${randomBytes(32).toString('base64')}`);
  await expect.poll(() => old(other)).toBe(1);
  const rotated = await startPod(`newer:${randomBytes(32).toString('base64')},${env.KEY_RING}`);
  const afterAMinute = () => {
    now += 2 * minute;
    return old(rotated);
  };
  await expect.poll(afterAMinute).toBe(0);
  now += 2 * minute;
  expect(await old(metricsUrl)).toBe(1);
});

it('the age of the current key counts from the first pod that started with it', async () => {
  const before = await age(handler.metricsUrl);
  now += 100 * day;
  const { KEY_RING: ring = '' } = handler.env;
  expect(await age(await startPod(ring))).toBe(Number(before) + (100 * day) / 1_000);
  const rotated = await startPod(`later:${randomBytes(32).toString('base64')},${ring}`);
  await expect.poll(() => age(rotated)).toBe(0);
  expect(await handler.rows('SELECT name FROM key_ring_keys ORDER BY name')).toEqual([
    { name: 'later' },
    { name: 'newer' },
    { name: 'other' },
    { name: 'test' },
  ]);
});
