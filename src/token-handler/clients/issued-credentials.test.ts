// Tests which credentials of an identity provider are accepted, at the limits of what can be stored.
import { describe, expect, it } from 'vitest';
import { changedSchema, issuedSchema } from './issued-credentials.ts';

const least = { client_id: 'oidc-1', client_secret: 'the secret' };
const all = {
  ...least,
  registration_access_token: 'a token',
  registration_client_uri: 'https://id.example.org/clients/oidc-1',
};

describe.each([
  ['a new client', issuedSchema, {}],
  ['a change', changedSchema, { redirect_uris: [] }],
] as const)('the response to %s', (_what, schema, defaults) => {
  it('is accepted with and without the members of RFC 7592; others are ignored', () => {
    expect(schema.parse(all)).toEqual({ ...all, ...defaults });
    expect(schema.parse({ ...least, grant_types: ['x'] })).toEqual({ ...least, ...defaults });
  });

  it.each([
    ['client_id', 500],
    ['client_secret', 4_096],
    ['registration_access_token', 16_384],
    ['registration_client_uri', 2_048],
  ])('may have a %s of %i characters, which are visible or spaces', (name, longest) => {
    const accepts = (value: unknown) => schema.safeParse({ ...all, [name]: value }).success;
    expect(['x'.repeat(longest), ' ~', 'a'].map(accepts)).toEqual([true, true, true]);
    const refused = ['x'.repeat(longest + 1), '', 'a\u001f', '\u007fa', 'é', 'a\0', '\ud800', 'a\n', '\na', 7, null];
    expect(refused.filter(accepts)).toEqual([]);
  });
});

it('a new client has an id and a secret', () => {
  for (const name of ['client_id', 'client_secret'])
    expect(issuedSchema.safeParse({ ...all, [name]: undefined }).success).toBe(false);
});

describe('the response to a change', () => {
  it('has the id, and may lack everything else', () => {
    expect(changedSchema.parse({ client_id: 'oidc-1' })).toEqual({ client_id: 'oidc-1', redirect_uris: [] });
    expect(changedSchema.safeParse({ ...all, client_id: undefined }).success).toBe(false);
  });

  it('lists the redirect URIs, which are texts', () => {
    const read = (redirect_uris: unknown) => changedSchema.safeParse({ client_id: 'oidc-1', redirect_uris });
    expect(read(['https://a.example/']).data?.redirect_uris).toEqual(['https://a.example/']);
    for (const value of [[7], 'https://a.example/', null]) expect(read(value).success).toBe(false);
  });
});
