// Tests that the platform's services would accept the schema, role and event that the token handler registers.
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { registered } from './platform-registration.ts';

const ajv = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true, strictRequired: false });
const definition = registered.definitions?.['platform:token-handler'];
const validate = ajv.compile(definition?.configurationSchema ?? false);
const takes = (configuration: unknown) => validate(configuration);

const full = {
  id: 'permits-web',
  name: 'Permits',
  description: 'x',
  redirectUris: ['https://permits.example.org/cb'],
  targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service' }, 'file-service'],
  keycloakLogout: true,
  authCallbackUrl: 'https://permits.example.org/cb',
  scope: ['email'],
  prompt: 'login',
  idpHint: 'x',
  successRedirectUrl: '/',
  failureRedirectUrl: '/',
};

describe('the schema of the client configuration', () => {
  it.each([
    ['nothing', {}],
    ['clients under the property clients', { clients: { 'permits-web': full, bare: {} } }],
    ['clients at the top level', { 'permits-web': full, clients: {} }],
    ['targets as a map', { clients: { a: { targets: { forms: { upstream: 'x' }, files: 'file-service' } } } }],
    [
      'null for fields that are not set',
      { clients: { a: { description: null, scope: null, prompt: null, targets: null } } },
    ],
    ['fields of the older platform', { clients: { a: { disableVerifyHost: true } } }],
  ])('accepts %s', (_, configuration) => {
    expect(takes(configuration), JSON.stringify(validate.errors)).toBe(true);
  });

  it.each([
    ['an id with a slash', { clients: { 'a/b': {} } }],
    ['a text for a client', { clients: { a: 'x' } }],
    ['a number for a client at the top level', { a: 1 }],
    ['a text for redirect URIs', { clients: { a: { redirectUris: 'https://a.example' } } }],
    ['a redirect URI with a fragment', { clients: { a: { redirectUris: ['https://a.example/#'] } } }],
    ['a target without upstream', { clients: { a: { targets: [{ id: 'x' }] } } }],
    ['a text for keycloakLogout', { clients: { a: { keycloakLogout: 'yes' } } }],
    ['an unknown prompt', { clients: { a: { prompt: 'always' } } }],
    ['a field with a missing letter', { clients: { a: { targts: [] } } }],
    ['a field with a wrong letter', { clients: { a: { redirectURis: [] } } }],
    ['a field with an extra letter', { a: { scopes: 'email' } }],
  ])('refuses %s', (_, configuration) => {
    expect(takes(configuration)).toBe(false);
  });

  it('sets no defaults, because the configuration service would write them into the documents of tenants', () => {
    expect(JSON.stringify(registered.definitions)).not.toContain('"default"');
  });
});

it('the problem of a misspelt field of a client names the field', () => {
  expect(takes({ clients: { a: { targts: [{ id: 'x', upstream: 'form-service' }] } } })).toBe(false);
  expect(validate.errors?.map(({ instancePath }) => instancePath)).toContain('/clients/a/targts');
});

it('the registration contains the role token-handler-admin, which tenant administrators get', () => {
  expect(registered.roles?.map(({ role, inTenantAdmin }) => [role, inTenantAdmin])).toEqual([
    ['token-handler-admin', true],
  ]);
});

it('the registration contains the event client-registered, with a schema that compiles', () => {
  expect(registered.events?.map(({ name }) => name)).toEqual(['client-registered']);
  const payload = ajv.compile(registered.events?.[0]?.payloadSchema ?? false);
  const client = { id: 'a', name: 'A', clientId: 'x' };
  expect(payload({ client, registeredBy: { id: '1', name: 'Ada' } })).toBe(true);
  expect(payload({ client })).toBe(false);
});

it('the registration contains only JSON values, and no null, which the configuration service cannot merge', () => {
  expect(JSON.parse(JSON.stringify(registered))).toEqual(registered);
  const values = (value: unknown): unknown[] =>
    typeof value === 'object' && value !== null ? Object.values(value).flatMap(values) : [value];
  expect(values(registered)).not.toContain(null);
});
