// Tests that a CoreClient resource becomes an entry in the core configuration that the token handler can read.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createClientParser } from '../../src/token-handler/clients/client.ts';
import { createCoreClientParser, hashEntry } from './core-client.ts';

const rules = { urnPrefix: 'urn:example', redirectUriRules: { allowInsecure: false, allowWildcardPaths: false } };
const parse = createCoreClientParser(rules);
const problems = (spec: unknown, name = 'permits') => parse({ name, spec }).problems;

describe('a CoreClient', () => {
  it('becomes a client with every field that the token handler reads', () => {
    const spec = {
      clientId: 'Permits',
      description: 'Permits of the province',
      redirectUris: ['https://permits.example.org/cb'],
      targets: [
        { id: 'forms', upstream: 'form-service' },
        { id: 'files', upstream: 'urn:example:platform:file-service:v1' },
      ],
      keycloakLogout: true,
    };
    const { entry } = parse({ name: 'permits', spec });
    expect(entry).toEqual({
      id: 'Permits',
      name: 'Permits',
      description: 'Permits of the province',
      redirectUris: ['https://permits.example.org/cb'],
      targets: [
        { id: 'forms', upstream: 'urn:example:platform:form-service' },
        { id: 'files', upstream: 'urn:example:platform:file-service:v1' },
      ],
      keycloakLogout: true,
    });
    expect(createClientParser({ ...rules, core: true })('Permits', entry).client).toMatchObject({
      ...entry,
      core: true,
    });
  });

  it('without a spec has its name as id, and no other fields', () => {
    expect(parse({ name: 'permits', spec: {} })).toEqual({
      clientId: 'permits',
      entry: { id: 'permits', name: 'permits', redirectUris: [], targets: [], keycloakLogout: false },
    });
  });

  it.each([
    ['an id with a dot', { clientId: 'a.b' }, 'clientId: must be 1 to 50'],
    ['an empty id', { clientId: '' }, 'clientId: must be 1 to 50'],
    ['a name that readers of JSON refuse', { clientId: '__proto__' }, 'clientId: must be another name'],
    ['a wildcard host', { redirectUris: ['https://*.example.org/'] }, 'redirectUris[0]: must not have a wildcard'],
    ['a dot segment', { redirectUris: ['https://a.example.org/../b'] }, 'redirectUris[0]: must not have a dot'],
    ['an http redirect URI', { redirectUris: ['http://a.example.org/'] }, 'redirectUris[0]: must be https'],
    [
      'a fragment',
      { redirectUris: ['https://a.example.org/', 'https://a.example.org/#x'] },
      'redirectUris[1]: must not',
    ],
    [
      'a URN of another prefix',
      { targets: [{ id: 'a', upstream: 'urn:ads:platform:x' }] },
      'targets[0].upstream: must',
    ],
    ['an address', { targets: [{ id: 'a', upstream: 'https://a.example.org' }] }, 'targets[0].upstream: must'],
    [
      'two targets of one id',
      { targets: ['x', 'y'].map((upstream) => ({ id: 'a', upstream })) },
      'targets: must have one',
    ],
    ['another type', { keycloakLogout: 'yes' }, 'keycloakLogout: '],
    ['no spec', undefined, 'spec: '],
  ])('with %s is rejected, and the problem names the field', (_, spec, problem) => {
    expect(problems(spec)?.[0]).toContain(problem);
  });

  it('whose name is not a valid id is rejected, and has no client id', () => {
    expect(parse({ name: 'permits.example.org', spec: {} })).toMatchObject({
      clientId: undefined,
      problems: [expect.stringContaining('clientId')],
    });
  });

  it('with more redirect URIs than the token handler uses is rejected, so that the operator learns of it', () => {
    const uris = (count: number, length: number) =>
      Array.from({ length: count }, (_, nth) => `https://a.example.org/${nth}/`.padEnd(length, 'x'));
    const limit = 'redirectUris: must be at most 100 redirect URIs of 16384 characters together';
    expect(problems({ redirectUris: uris(17, 1_000) })).toEqual([limit]);
    expect(problems({ redirectUris: uris(101, 30) })).toEqual([limit]);
    expect(problems({ redirectUris: [...uris(16, 1_000), ...uris(16, 1_000)] })).toBeUndefined();
  });

  it('may have http redirect URIs of every host if that is allowed', () => {
    const lenient = createCoreClientParser({
      ...rules,
      redirectUriRules: { allowInsecure: true, allowWildcardPaths: false },
    });
    expect(lenient({ name: 'a', spec: { redirectUris: ['http://a.example.org/'] } }).problems).toBeUndefined();
  });

  it('has its redirect URIs normalised', () => {
    const redirectUris = ['HTTPS://A.example.org:443/cb', 'https://a.example.org/cb'];
    expect(parse({ name: 'a', spec: { redirectUris } }).entry?.redirectUris).toEqual(['https://a.example.org/cb']);
  });

  it('is never quoted in a problem', () => {
    const secret = 'kept-to-itself';
    const spec = {
      clientId: `${secret}.`,
      redirectUris: [`https://me:${secret}@a.example.org/`],
      targets: [{ id: `${secret}/`, upstream: `https://${secret}` }],
      keycloakLogout: secret,
    };
    const found = problems(spec) ?? [];
    expect(found.length).toBeGreaterThanOrEqual(5);
    expect(found.join('\n')).not.toContain(secret);
  });

  it('that is accepted is accepted by the token handler too, whatever the spec', () => {
    const text = fc.oneof(
      fc.constantFrom('form-service', 'a b', 'https://a.example.org/', 'urn:example:a:b'),
      fc.string(),
    );
    const spec = fc.record(
      {
        clientId: text,
        description: text,
        redirectUris: fc.array(text),
        targets: fc.array(fc.record({ id: text, upstream: text })),
        keycloakLogout: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(spec, (given) => {
        const { entry } = parse({ name: 'permits', spec: given });
        if (entry) expect(createClientParser({ ...rules, core: true })(entry.id, entry).problems).toBeUndefined();
      }),
    );
  });
});

describe('the hash of an entry', () => {
  it('does not depend on the order of members, and differs between different entries', () => {
    expect(hashEntry({ a: 1, b: { c: [1, 2], d: null } })).toBe(hashEntry({ b: { d: null, c: [1, 2] }, a: 1 }));
    const others = [{ a: 1 }, { a: '1' }, { a: [1] }, { a: null }, {}, [], undefined, { a: 1, b: 1 }, { a: [1, 2] }];
    expect(new Set(others.map(hashEntry)).size).toBe(others.length);
  });
});
