// The first start of the form service, on a platform whose notification service still uses an old configuration from
// its cache. Follows the steps of docs/platform.md.
import { expect, it, onTestFinished } from 'vitest';
import { draft, startFormWorld } from '../support/form-world.ts';
import { call, roleToken } from '../support/platform.ts';
import { referenceBehaviour } from '../support/platform-behaviour.ts';

const cache = 2 * 60_000;

it('codes get 503 with the reason, and waiting deliveries are sent when the notification service has read its configuration', async () => {
  let shift = 0;
  const world = await startFormWorld({
    platformEnv: { ...referenceBehaviour, REFERENCE_CACHE: 'PT2M' },
    platformClock: () => new Date(Date.now() + shift),
  });
  onTestFinished(() => world.close());
  const { access, mailbox, tenant, url } = world.platform;
  const token = await roleToken(access, { 'notification-service': ['subscription-app'] });
  // The notification service reads and caches its configuration before Formgate registers.
  await call(`${url}/subscription/v1/types?tenantId=${encodeURIComponent(tenant.id)}`, { token });

  const forms = await world.start();
  // Otherwise, the notification service could read its configuration again before the registration is written.
  await expect.poll(() => forms.logText()).toContain('registration written');
  const id = await draft(forms, 'ana@example.org');
  const send = () => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
  expect(await send()).toMatchObject({
    status: 503,
    body: { detail: expect.stringContaining('has not read the registration of this service yet') },
  });
  const metrics = async () => (await call(`${forms.metricsUrl}/metrics`)).text;
  expect(await metrics()).toContain('formgate_platform_registration_unknown{dependency="notifications"} 1');
  expect(forms.logText()).toContain('registration unknown to the service');

  shift = cache + 1_000;
  await expect.poll(async () => (await send()).status).toBe(202);
  expect(await metrics()).toContain('formgate_platform_registration_unknown{dependency="notifications"} 0');
  await mailbox.waitFor(({ to, subject }) => to.includes('ana@example.org') && subject.includes('draft is saved'));
  expect((await world.pool.query('SELECT FROM quarantine')).rowCount).toBe(0);
});
