// Tests the register API on a platform with another URN prefix: roles, audiences and tenants use that prefix.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { roleToken } from '../../../test/support/platform.ts';
import { type RegisterBackend, type Replica, startRegisterBackend } from '../../../test/support/registers.ts';

let backend: RegisterBackend;
let api: Replica;

beforeAll(async () => {
  backend = await startRegisterBackend({ urnPrefix: 'urn:ads' });
  api = await backend.start();
});
afterAll(() => backend.close());

it('with another URN prefix, only roles and tenants of that prefix count, not those of urn:example', async () => {
  const { access, tenant } = backend;
  expect(access.urns.service('configuration-service')).toBe('urn:ads:platform:configuration-service');
  expect(tenant.id).toMatch(/^urn:ads:platform:tenant-service:v2:\/tenants\//);
  const own = await roleToken(access, { 'configuration-service': ['configuration-admin'] }, { realm: 'demo' });
  const body = { name: backend.newName(), description: '' };
  expect((await api.request('POST', '', { token: own, body })).status).toBe(201);
  const foreign = await access.foreignToken({
    aud: access.urns.service('form-service'),
    resource_access: { 'urn:example:platform:configuration-service': { roles: ['configuration-admin'] } },
  });
  expect((await api.request('GET', '', { token: foreign })).status).toBe(403);
});

it('the OpenAPI document names registers with that prefix', () => {
  const descriptions = api.routes.map(({ description }) => description ?? '').join();
  expect(descriptions).toContain('`urn:ads:platform:configuration:v2:/configuration/data-register/<name>`');
  expect(descriptions).not.toContain('urn:example');
});
