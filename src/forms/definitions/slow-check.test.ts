// Tests that a check of a form definition ends while the configuration service is slow.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type SlowRegisters, startSlowRegisters } from '../../../test/support/slow-registers.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createDefinitionCheck } from './check.ts';
import { createSchemaValidator, type SchemaValidator } from './schema-validator.ts';

const callTimeout = 500;
const names = Array.from({ length: 50 }, (_, nth) => `register-${nth}`);
let service: SlowRegisters;
let validator: SchemaValidator;
beforeAll(async () => {
  const entries = { revision: 0, configuration: ['one'] };
  service = await startSlowRegisters({ names, pause: callTimeout / 2, entries, callTimeout });
  const parts = { metrics: createMetrics(), log: captureLog().log, clock: systemClock };
  validator = createSchemaValidator({ ...parts, urnPrefix: service.urns.prefix });
});
afterAll(async () => {
  await validator.close();
  await service.close();
});

it('a check gets 504, and reads no further register, when it has waited for three calls of the longest duration', async () => {
  const { urns, configuration } = service;
  const check = createDefinitionCheck({ validator, configuration, urns, callTimeout });
  const elements = names.map((name) => ({ options: { register: { urn: urns.register(name) } } }));
  const definition = { name: 'Permit', anonymousApply: true, uiSchema: { type: 'VerticalLayout', elements } };
  const checked = check(definition, { tenantId: 'urn:example:tenants/demo' });
  await expect(checked).rejects.toMatchObject({ slug: 'dependency-timeout', status: 504 });
  await sleep(callTimeout);
  expect(service.reads()).toBeGreaterThan(2);
  expect(service.reads()).toBeLessThan(10);
});
