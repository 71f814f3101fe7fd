// Tests the checks behind `GET /health` against a real platform.
import { expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { testServiceSecret } from '../../test/support/access.ts';
import { captureLog } from '../../test/support/captured-log.ts';
import { startTestPlatform } from '../../test/support/platform.ts';
import { startTcpGate } from '../../test/support/tcp-gate.ts';
import { parseConfig } from '../service/operations/config.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { accessFields } from '../service/operations/process-fields.ts';
import { platformHealthChecks } from './health-checks.ts';
import { createPlatform } from './platform.ts';
import { platformFields } from './platform-fields.ts';

it('access fails during an outage of the identity provider, although the token from before is still valid', async () => {
  const services = await startTestPlatform();
  const { url, urns } = services.access;
  const gate = await startTcpGate(Number(new URL(url).port));
  const env = {
    ACCESS_SERVICE_URL: url.replace(new URL(url).host, `127.0.0.1:${gate.port}`),
    ACCESS_SERVICE_PUBLIC_URL: url,
    DIRECTORY_URL: services.directoryUrl,
    CLIENT_SECRET: testServiceSecret(urns.service('form-service')),
  };
  const config = parseConfig(z.object({ ...accessFields, ...platformFields }), env);
  const { log } = captureLog();
  const platform = createPlatform({ config, service: 'form-service', urns, metrics: createMetrics(), log, env });
  onTestFinished(async () => {
    await platform.close();
    await Promise.all([gate.close(), services.close()]);
  });
  const { access } = platformHealthChecks({ config, platform, urns }, ['platform', 'form-service']);
  expect(await access()).toBe(true);
  await gate.shut();
  await expect(access()).rejects.toThrow();
  expect(await platform.account.token()).toEqual(expect.any(String));
  await gate.open();
  expect(await access()).toBe(true);
});
