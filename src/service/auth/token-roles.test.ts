// Tests which roles of a token a caller has, and how many a token may name.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memoryOfRoles, roleClaims, rolesOf } from './token-roles.ts';

const own = 'urn:formgate:form';
const parse = (claims: unknown) => z.object(roleClaims).parse(claims);
const roles = (claims: unknown) => {
  const found = rolesOf(parse(claims), own);
  return found && [...found];
};

describe('a caller', () => {
  it('has no role without the claims, or without roles in them', () => {
    expect(roles({})).toEqual([]);
    expect(roles({ realm_access: {}, resource_access: {} })).toEqual([]);
    expect(roles({ realm_access: { roles: [] }, resource_access: { app: {} } })).toEqual([]);
  });

  it('has realm roles by name, client roles with the client, and those of the own client also without it', () => {
    expect(
      roles({
        realm_access: { roles: ['staff'] },
        resource_access: { app: { roles: ['editor', 'reader'] }, [own]: { roles: ['admin'] } },
      }),
    ).toEqual(['staff', 'app:editor', 'app:reader', `${own}:admin`, 'admin']);
  });

  it('has a role once that the token names several times', () => {
    const claims = { realm_access: { roles: ['admin', 'admin'] }, resource_access: { [own]: { roles: ['admin'] } } };
    expect(roles(claims)).toEqual(['admin', `${own}:admin`]);
  });

  it('does not get the role of another client as its own', () => {
    expect(roles({ resource_access: { [`${own}2`]: { roles: ['admin'] } } })).toEqual([`${own}2:admin`]);
  });

  it.each([
    ['a realm with other claims', { realm_access: 'admin' }],
    ['a role that is no text', { realm_access: { roles: [7] } }],
    ['roles that are no list', { resource_access: { app: { roles: 'admin' } } }],
    ['clients that are a list', { resource_access: [['app']] }],
  ])('is refused with %s', (_what, claims) => {
    expect(() => parse(claims)).toThrow(z.ZodError);
  });
});

describe('the names of client roles', () => {
  const many = (client: string, count: number) => ({
    [client]: { roles: Array.from({ length: count }, (_, nth) => String(nth)) },
  });

  it('may repeat their clients up to 128 KiB, with the colon, in total', () => {
    const half = many('c'.repeat(1_023), 64);
    const other = many('d'.repeat(1_023), 64);
    expect(roles({ resource_access: { ...half, ...other } })).toHaveLength(128);
    expect(roles({ resource_access: { ...half, ...other, ...many('e', 1) } })).toBeUndefined();
  });

  it('may be long themselves', () => {
    expect(roles({ resource_access: { app: { roles: ['r'.repeat(200_000)] } } })).toHaveLength(1);
  });
});

it('roles count with the memory of each name', () => {
  expect(memoryOfRoles(new Set())).toBe(0);
  expect(memoryOfRoles(new Set(['ab', 'cde']))).toBe(205);
});
