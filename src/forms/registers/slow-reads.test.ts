// Tests that requests that read many registers or form definitions end while the configuration service is slow. The
// service responds to each read of entries that they do not exist.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SlowRegisters, startSlowRegisters } from '../../../test/support/slow-registers.ts';
import { listDefinitions } from '../definitions/list.ts';
import { createRegisterStore } from './store.ts';

const names = Array.from({ length: 400 }, (_, nth) => `register-${nth}`);
const context = { tenantId: 'urn:example:tenants/demo' };
let service: SlowRegisters;
beforeAll(async () => {
  service = await startSlowRegisters({ names, pause: 200, entries: {} });
});
afterAll(() => service.close());

const store = () => createRegisterStore(service.configuration, { longestRead: 500 });

async function listAll(): Promise<void> {
  for await (const _definition of listDefinitions(service.configuration, context, 500));
}

it.each([
  ['a list of registers', () => store().list(context, { top: 100 })],
  ['a search for dead references', () => store().existing(names, context)],
  ['a list of form definitions, or a search for references in them,', listAll],
])('%s gets 502, and reads nothing further, when its reads have taken too long', async (_name, request) => {
  const before = service.reads();
  const detail = expect.stringContaining('The configuration service took too long');
  const tooLong = { slug: 'dependency-failed', detail };
  await expect(request()).rejects.toMatchObject(tooLong);
  const atEnd = service.reads();
  await sleep(1_000);
  expect(service.reads() - atEnd).toBeLessThan(50);
  expect(service.reads() - before).toBeLessThan(200);
});
