// Tests that requests that read many registers end while the configuration service is slow. The configuration service
// is scripted: it responds to each read of entries a little later, and says that they do not exist.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestAccess, type TestAccess, testServiceSecret } from '../../../test/support/access.ts';
import { type Connection, connectConfiguration } from '../../../test/support/configuration-connection.ts';
import { type FaultServer, sendJson, startFaultServer } from '../../../test/support/fault-server.ts';
import { newDefinition } from './register.ts';
import { createRegisterStore } from './store.ts';

const names = Array.from({ length: 400 }, (_, nth) => `register-${nth}`);
const context = { tenantId: 'urn:example:tenants/demo' };
let access: TestAccess;
let service: FaultServer;
let connection: Connection;
let reads = 0;
beforeAll(async () => {
  access = await startTestAccess();
  service = await startFaultServer(async (response, { target }) => {
    if (target.includes('/platform/configuration-service')) {
      const configuration = Object.fromEntries(names.map((name) => [`data-register:${name}`, newDefinition('')]));
      return sendJson(response, { latest: { revision: 0, configuration } });
    }
    reads += 1;
    await sleep(200);
    return sendJson(response, {});
  });
  const clientId = access.urns.service('form-service');
  const account = { accessUrl: access.url, clientId, clientSecret: testServiceSecret(clientId) };
  connection = connectConfiguration(account, { url: service.url });
});
beforeEach(() => {
  reads = 0;
});
afterAll(async () => {
  await connection.close();
  await service.close();
  await access.close();
});

const store = () => createRegisterStore(connection.configuration, { longestRead: 500 });

it.each([
  ['a list of registers', () => store().list(context, { top: 100 })],
  ['a search for dead references', () => store().existing(names, context)],
])('%s gets 502, and reads no further register, when its reads have taken too long', async (_name, request) => {
  const tooLong = { slug: 'dependency-failed', detail: 'The configuration service took too long.' };
  await expect(request()).rejects.toMatchObject(tooLong);
  const atEnd = reads;
  await sleep(1_000);
  expect(reads - atEnd).toBeLessThan(50);
  expect(reads).toBeLessThan(200);
});
