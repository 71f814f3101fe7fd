// Tests that a check of a form definition ends while the configuration service is slow. The configuration service is
// scripted: it responds to each read of a register a little later.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestAccess, type TestAccess, testServiceSecret } from '../../../test/support/access.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type Connection, connectConfiguration } from '../../../test/support/configuration-connection.ts';
import { type FaultServer, sendJson, startFaultServer } from '../../../test/support/fault-server.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { newDefinition } from '../registers/register.ts';
import { createDefinitionCheck } from './check.ts';
import { createSchemaValidator, type SchemaValidator } from './schema-validator.ts';

const callTimeout = 500;
const names = Array.from({ length: 50 }, (_, nth) => `register-${nth}`);
let access: TestAccess;
let service: FaultServer;
let connection: Connection;
let validator: SchemaValidator;
beforeAll(async () => {
  access = await startTestAccess();
  service = await startFaultServer(async (response, { target }) => {
    if (target.includes('/platform/configuration-service')) {
      const configuration = Object.fromEntries(names.map((name) => [`data-register:${name}`, newDefinition('')]));
      return sendJson(response, { latest: { revision: 0, configuration } });
    }
    if (!target.includes('/data-register/')) return sendJson(response, {});
    await sleep(callTimeout / 2);
    return sendJson(response, { revision: 0, configuration: ['one'] });
  });
  const clientId = access.urns.service('form-service');
  const account = { accessUrl: access.url, clientId, clientSecret: testServiceSecret(clientId) };
  connection = connectConfiguration(account, { url: service.url, timeoutMs: callTimeout });
  const parts = { metrics: createMetrics(), log: captureLog().log, clock: systemClock };
  validator = createSchemaValidator({ ...parts, urnPrefix: access.urns.prefix });
});
afterAll(async () => {
  await validator.close();
  await connection.close();
  await service.close();
  await access.close();
});

it('a check gets 504, and reads no further register, when it has waited for three calls of the longest duration', async () => {
  const { urns } = access;
  const check = createDefinitionCheck({ validator, configuration: connection.configuration, urns, callTimeout });
  const elements = names.map((name) => ({ options: { register: { urn: urns.register(name) } } }));
  const definition = { name: 'Permit', anonymousApply: true, uiSchema: { type: 'VerticalLayout', elements } };
  const checked = check(definition, { tenantId: 'urn:example:tenants/demo' });
  await expect(checked).rejects.toMatchObject({ slug: 'dependency-timeout', status: 504 });
  const read = () => service.requests.filter(({ target }) => target.includes('/data-register/')).length;
  await sleep(callTimeout);
  expect(read()).toBeGreaterThan(2);
  expect(read()).toBeLessThan(10);
});
