// Tests a rollout and its rollback under traffic. Pods of the old version and of this version use the same stores,
// serve each other's sessions and forms, and deliver each other's events. The old version still works after this
// version's migrations.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../support/until.ts';
import { checkOutOldVersion, missingHistory } from './old-version.ts';
import { configure, register } from './people.ts';
import type { Product, Version } from './products.ts';
import { type Pods, startTraffic } from './traffic.ts';
import { startWorld, type World } from './world.ts';

/** Milliseconds of traffic in each phase. */
const phase = Number(process.env.UPGRADE_PHASE_SECONDS ?? '15') * 1_000;

it('pods of both versions serve together, forwards and back, without a failed request', async () => {
  const world = await startWorld({ oldFolder: await checkOutOldVersion() });
  onTestFinished(() => world.close());
  // Access tokens are valid for 4 s only, so that pods of both versions refresh them.
  await world.access.addRealm('demo', { accessTokenLifetime: 4 });
  await world.start('platform-server', 'old');
  await configure(world);
  const pods: Pods = { forms: [], handlers: [] };
  await addPods(world, pods, 'old');
  await until('the registration', () => pods.forms.some(({ logText }) => /registered at the platform/.test(logText())));
  await register(world, pods.handlers[0]?.url ?? '');
  const traffic = await startTraffic(world, pods);

  await sleep(phase);
  // The rollout: migrations run while the old pods serve.
  const beside = await world.start('platform-server', 'new', { PORT: '0' });
  await addPods(world, pods, 'new');
  await sleep(phase);
  await Promise.all([world.reconcile('old'), world.reconcile('new')]);
  await removePods(pods, 'old');
  await sleep(phase);
  // The rollback: the old version runs on the schema of the new version.
  await addPods(world, pods, 'old');
  await sleep(phase);
  await removePods(pods, 'new');
  await beside.stop();
  await world.reconcile('old');
  await sleep(phase);
  await traffic.stop();

  expect(traffic.failures).toEqual([]);
  expect(traffic.submitted.length).toBeGreaterThan(10);
  expect(traffic.revoked).toBeGreaterThan(1);
  await until('deliveries', async () => (await waiting(world)) === 0);
  const { rows } = await world.pools.platform.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM event_keys WHERE split_part(key, ':', 1) = ANY ($1)`,
    [traffic.submitted],
  );
  // Each submitted form has two events: form-created and form-submitted.
  expect(rows[0]?.n).toBe(2 * traffic.submitted.length);
  process.stdout.write(
    `${traffic.requests} requests, ${traffic.submitted.length} forms, ${traffic.revoked} sessions\n`,
  );
}, 600_000);

it('a clone without the history is told so in one line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-shallow-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  execFileSync('git', ['init', '-q', folder]);
  expect(missingHistory(folder)).toMatch(
    /^This clone does not have the commit of version 0\.2\.0 .*git fetch --unshallow\.$/,
  );
});

async function addPods(world: World, pods: Pods, version: Version): Promise<void> {
  const [forms, handler] = await Promise.all([world.start('forms', version), world.start('token-handler', version)]);
  pods.forms.push(forms);
  pods.handlers.push(handler);
}

/** Removes pods as a cluster does: first they get no new requests, and then they stop. */
async function removePods(pods: Pods, version: Version): Promise<void> {
  const leaving = [...pods.forms, ...pods.handlers].filter((pod) => pod.version === version);
  const stays = (pod: Product) => pod.version !== version;
  pods.forms.splice(0, pods.forms.length, ...pods.forms.filter(stays));
  pods.handlers.splice(0, pods.handlers.length, ...pods.handlers.filter(stays));
  await sleep(1_000);
  await Promise.all(leaving.map((pod) => pod.stop()));
}

async function waiting({ pools }: World): Promise<number> {
  const sql = "SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL AND lane = 'events'";
  return (await pools.forms.query<{ n: number }>(sql)).rows[0]?.n ?? 0;
}
