// Tests the event that is published after a registration. Also tests that the secrets of a registration can be
// decrypted only in the row for which they were encrypted.
import { describe, expect, it } from 'vitest';
import { createKeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import {
  clientAuthentications,
  managements,
  openRegistration,
  openToken,
  registeredEvent,
  registrationColumns,
  type StoredRegistration,
  sealRegistration,
  sealToken,
} from './registration.ts';

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const keys = createKeyRing(`k1:${keyOf(1)}`);
const registration: StoredRegistration = {
  tenantId: 'urn:example:tenants/demo',
  clientId: 'permits-web',
  realm: 'demo',
  oidcClientId: 'oidc-1',
  clientName: 'permits-web (registration 1)',
  issuer: null,
  authentication: 'client_secret_basic',
  management: 'kept',
  clientSecret: 'the secret',
  registrationAccessToken: 'the token',
  registrationClientUri: 'https://access.example.org/clients/oidc-1',
  redirectUris: ['https://permits.example.org/cb'],
  registeredAt: new Date('2026-08-20T17:00:00Z'),
  revision: 3,
};
const sealed = sealRegistration(keys, registration);

describe('a sealed registration', () => {
  it('hides the secret and the token, and nothing else', () => {
    const { clientSecret, registrationAccessToken, ...shown } = sealed;
    expect(registration).toMatchObject(shown);
    expect(clientSecret).toMatch(/^k1\./);
    expect(registrationAccessToken).toMatch(/^k1\./);
    expect(JSON.stringify(sealed)).not.toMatch(/the secret|the token/);
  });

  it('can be opened', () => {
    expect(openRegistration(keys, sealed)).toEqual(registration);
    expect(openToken(keys, sealed)).toBe('the token');
    expect(openToken(keys, { ...sealed, registrationAccessToken: sealToken(keys, sealed, 'next') })).toBe('next');
  });

  it.each([
    ['of another tenant', { tenantId: 'urn:example:tenants/other' }],
    ['of another client at the identity provider', { oidcClientId: 'oidc-2' }],
    ['whose secret is the sealed token', { clientSecret: sealed.registrationAccessToken }],
    ['whose secret is not sealed', { clientSecret: 'the secret' }],
  ])('cannot be opened in a row %s', (_, changes) => {
    const row = { ...sealed, ...changes };
    expect(() => openRegistration(keys, row)).toThrow(KeyRingError);
    // A registration with the secret of another row cannot be opened, even if the token belongs to this row.
    const registrationAccessToken = sealToken(keys, row, 'the token');
    expect(() => openRegistration(keys, { ...row, registrationAccessToken })).toThrow(KeyRingError);
  });

  it.each([
    ['of another tenant', { tenantId: 'urn:example:tenants/other' }],
    ['of another client at the identity provider', { oidcClientId: 'oidc-2' }],
    ['whose token is the sealed secret', { registrationAccessToken: sealed.clientSecret }],
  ])('has a token that cannot be opened in a row %s', (_, changes) => {
    expect(() => openToken(keys, { ...sealed, ...changes })).toThrow(KeyRingError);
    const ownSecret = { clientSecret: sealRegistration(keys, { ...registration, ...changes }).clientSecret };
    expect(() => openRegistration(keys, { ...sealed, ...changes, ...ownSecret })).toThrow(KeyRingError);
  });

  it('cannot be opened without its key', () => {
    expect(() => openRegistration(createKeyRing(`k2:${keyOf(2)}`), sealed)).toThrow(KeyRingError);
  });
});

it('the columns that are read are all that a stored registration has', () => {
  const names = registrationColumns.split(',').map((column) => /(?:AS "(\w+)"|(\w+))$/.exec(column.trim()));
  expect(names.map((found) => found?.[1] ?? found?.[2]).sort()).toEqual(Object.keys(registration).sort());
});

it('a client can be managed and can authenticate in the ways that the database allows', () => {
  expect(managements).toEqual(['kept', 'lost', 'unsupported', 'provided']);
  expect(clientAuthentications).toEqual(['client_secret_basic', 'client_secret_post']);
});

describe('the event of a registration', () => {
  const client = { id: 'permits-web', name: 'Permits', description: 'x' };
  const by = { subject: 'alice', name: 'Alice', email: 'alice@example.org' };

  it('names the client and who registered it, and contains no secret', () => {
    const registered = { clientId: 'oidc-1', clientSecret: 'the secret' };
    expect(registeredEvent(client, registered, by)).toEqual({
      name: 'client-registered',
      payload: {
        client: { id: 'permits-web', name: 'Permits', clientId: 'oidc-1' },
        registeredBy: { id: 'alice', name: 'Alice' },
      },
    });
  });

  it('has the deprecated callback URL if the request had one', () => {
    const authCallbackUrl = 'https://permits.example.org/cb';
    expect(registeredEvent(client, { clientId: 'oidc-1', authCallbackUrl }, by).payload.client).toEqual({
      id: 'permits-web',
      name: 'Permits',
      clientId: 'oidc-1',
      authCallbackUrl,
    });
    expect(
      registeredEvent(client, { clientId: 'oidc-1', authCallbackUrl: undefined }, by).payload.client,
    ).not.toHaveProperty('authCallbackUrl');
  });
});
