// Tests the parsing of a client's configuration.
import { describe, expect, it } from 'vitest';
import { createClientParser } from './client.ts';

const rules = {
  urnPrefix: 'urn:example',
  redirectUriRules: { allowInsecure: false, allowWildcardPaths: false },
  core: false,
};
const read = (entry: unknown, key = 'permits-web') => createClientParser(rules)(key, entry);
const fieldsOf = (entry: unknown, key?: string) => read(entry, key).problems?.map(({ field }) => field);
const targetsOf = (targets: unknown) => read({ targets }).client?.targets;

describe('a client', () => {
  it('needs only an id: by default it has no redirect URIs, no targets, the scope openid, and no logout at the identity provider', () => {
    const client = {
      id: 'permits-web',
      name: 'permits-web',
      redirectUris: [],
      targets: [],
      keycloakLogout: false,
      scope: ['openid'],
      core: false,
    };
    expect(read({})).toEqual({ client, unknownFields: [], leftOut: [] });
  });

  it('has all fields that are configured', () => {
    const entry = {
      id: 'permits-web',
      name: 'Permits',
      description: 'Permits of the town',
      redirectUris: ['https://permits.example.org/cb', 'https://permits.example.org/cb'],
      targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service:v1' }],
      keycloakLogout: true,
      authCallbackUrl: 'http://permits.example.org/token-handler/clients/permits-web/callback',
      scope: ['email', 'openid', 'offline_access'],
      prompt: 'login',
      idpHint: 'town-id',
      successRedirectUrl: '/welcome?x=1',
      failureRedirectUrl: 'https://permits.example.org/sorry',
    };
    expect(createClientParser({ ...rules, core: true })('permits-web', entry).client).toEqual({
      ...entry,
      redirectUris: ['https://permits.example.org/cb'],
      scope: ['openid', 'email', 'offline_access'],
      core: true,
    });
  });

  it('may have null for a field that is not set, as clients of the older platform do', () => {
    const names =
      'name description redirectUris targets keycloakLogout authCallbackUrl scope prompt idpHint successRedirectUrl failureRedirectUrl';
    const entry = Object.fromEntries(names.split(' ').map((name) => [name, null]));
    expect(read(entry)).toEqual(read({}));
  });

  it('may have unknown fields, which are ignored and reported', () => {
    const { client, unknownFields } = read({ disableVerifyHost: true, name: null, core: true });
    expect(client).toEqual(read({}).client);
    expect(unknownFields).toEqual(['disableVerifyHost', 'core']);
    expect(read({ name: 'x' }).unknownFields).toEqual([]);
    expect(read({ name: `a\0${'é'.repeat(500)}` }).client?.name).toBe(`a\ufffd${'é'.repeat(198)}`);
  });

  it('may have unknown fields in its targets, which are ignored and reported with the target', () => {
    const upstream = 'form-service';
    const { unknownFields } = read({ targets: [{ id: 'forms', upstream, timeout: 1 }, 'file-service'], typo: 1 });
    expect(unknownFields).toEqual(['typo', 'targets.forms.timeout']);
    expect(read({ targets: { forms: { upstream, timeout: 1, x: 2 }, files: upstream } }).unknownFields).toEqual([
      'targets.forms.timeout',
      'targets.forms.x',
    ]);
  });

  it.each(['permits-web', 'Permits Web_2', 'a', '9'.repeat(50), 'constructor', '__proto__'])(
    'may have the id %j',
    (id) => {
      expect(read({}, id).client?.id).toBe(id);
    },
  );

  it.each(['', '9'.repeat(51), 'a/b', 'a:b', 'ä', 'a.b', 'a\n'])('cannot have the id %j', (id) => {
    expect(fieldsOf({}, id)).toEqual(['id']);
  });

  it.each([
    ['an id other than its key', { id: 'other' }, 'id'],
    ['an empty name', { name: '' }, 'name'],
    ['a text for redirect URIs', { redirectUris: 'https://permits.example.org/cb' }, 'redirectUris'],
    ['a number for a redirect URI', { redirectUris: [1] }, 'redirectUris'],
    ['a text for keycloakLogout', { keycloakLogout: 'true' }, 'keycloakLogout'],
    ['a path for authCallbackUrl', { authCallbackUrl: '/cb' }, 'authCallbackUrl'],
    ['a script for authCallbackUrl', { authCallbackUrl: 'javascript:alert(1)' }, 'authCallbackUrl'],
    [
      'a script with http in it for authCallbackUrl',
      { authCallbackUrl: 'xhttp://permits.example.org/' },
      'authCallbackUrl',
    ],
    ['a protocol that only begins like http', { authCallbackUrl: 'httpx://permits.example.org/' }, 'authCallbackUrl'],
    ['an unknown prompt', { prompt: 'always' }, 'prompt'],
    ['a number for a scope', { scope: [1] }, 'scope'],
    ['a number for scopes', { scope: 1 }, 'scope'],
    ['a scope with a space', { scope: ['a b'] }, 'scope'],
    ['a scope that begins with a quotation mark', { scope: ['"b'] }, 'scope'],
    ['a scope that ends with a backslash', { scope: ['b\\'] }, 'scope'],
    ['an invalid scope after a valid one', { scope: 'email "x"' }, 'scope'],
    ['a scope with a quotation mark', { scope: ['a"b'] }, 'scope'],
    ['a landing address with another host', { successRedirectUrl: '//evil.example' }, 'successRedirectUrl'],
    ['a landing address with a backslash', { successRedirectUrl: '/\\evil.example' }, 'successRedirectUrl'],
    [
      'a landing address of more than 2,000 characters',
      { failureRedirectUrl: `/${'a'.repeat(2_000)}` },
      'failureRedirectUrl',
    ],
    [
      'a callback address of more than 2,000 characters',
      { authCallbackUrl: 'https://permits.example.org/'.padEnd(2_001, 'x') },
      'authCallbackUrl',
    ],
    ['an identity provider hint of more than 200 characters', { idpHint: 'a'.repeat(201) }, 'idpHint'],
    ['scopes of more than 2,000 characters', { scope: ['a'.repeat(1_000), 'b'.repeat(1_000)] }, 'scope'],
    ['a landing address with a space', { successRedirectUrl: '/a b' }, 'successRedirectUrl'],
    ['a landing address with a control character', { successRedirectUrl: '/a\u0001b' }, 'successRedirectUrl'],
    ['an empty landing address', { successRedirectUrl: '' }, 'successRedirectUrl'],
    ['a relative landing address', { successRedirectUrl: 'welcome' }, 'successRedirectUrl'],
    ['a landing address without a host', { successRedirectUrl: 'https:///welcome' }, 'successRedirectUrl'],
    ['a landing address with an invalid host', { successRedirectUrl: 'https://a:b' }, 'successRedirectUrl'],
    ['a script with a URL in it', { successRedirectUrl: 'javascript:https://x.example' }, 'successRedirectUrl'],
    ['a landing address with a user', { successRedirectUrl: 'https://me@permits.example.org/' }, 'successRedirectUrl'],
    [
      'a landing address with a password',
      { successRedirectUrl: 'https://:pw@permits.example.org/' },
      'successRedirectUrl',
    ],
    ['a landing address with a line break', { failureRedirectUrl: '/a\r\nb' }, 'failureRedirectUrl'],
    ['a script for a landing address', { failureRedirectUrl: 'javascript:alert(1)' }, 'failureRedirectUrl'],
  ])('cannot have %s', (_, entry, field) => {
    expect(fieldsOf(entry)).toEqual([field]);
  });

  it.each(['/', '/welcome#x', '/a//b', 'https://permits.example.org', 'HTTP://permits.example.org/x'])(
    'may land at %j after a sign-in',
    (address) => {
      expect(read({ successRedirectUrl: address, failureRedirectUrl: address }).client).toMatchObject({
        successRedirectUrl: address,
        failureRedirectUrl: address,
      });
    },
  );

  it.each(['none', 'login', 'consent', 'select_account'])('may ask for the prompt %s', (prompt) => {
    expect(read({ prompt }).client?.prompt).toBe(prompt);
  });

  it('may ask for scopes with all characters that scope names have', () => {
    const scope = ['!', '#', '[', ']', '~', 'https://example.org/a:b'];
    expect(read({ scope }).client?.scope).toEqual(['openid', ...scope]);
  });

  it.each([
    ['a text', 'x'],
    ['a list', []],
    ['nothing', null],
    ['a number', 1],
  ])('is not %s', (_, entry) => {
    expect(read(entry).client).toBeUndefined();
  });

  it('that is no object has a problem of the entry', () => {
    expect(fieldsOf('x')).toEqual(['entry']);
  });

  it('has problems that say what to correct', () => {
    const text = JSON.stringify([read({}, 'a/b'), read({ id: 'x' }), read({ targets: 'x' }), read({ targets: [7] })]);
    expect(text).toContain('must be 1 to 50 letters, digits, spaces, hyphens and underscores');
    expect(text).toContain('must equal the key of the entry');
    expect(text).toContain('must be an array or a map');
    const { problems } = read({
      scope: '"',
      targets: [{ id: 'x', upstream: 'a:b' }],
      authCallbackUrl: 'x',
      successRedirectUrl: 'x',
    });
    expect(problems).toEqual([
      { field: 'targets', detail: 'must be the URN of a service or an API, or the name of a platform service' },
      { field: 'authCallbackUrl', detail: 'must be an http or https URL' },
      { field: 'scope', detail: 'must contain scope names only' },
      { field: 'successRedirectUrl', detail: 'must be a path, or an http or https URL without credentials' },
    ]);
    expect(read({ targets: ['x', 'x'] }).problems).toEqual([{ field: 'targets', detail: 'must have different ids' }]);
    expect(read({ targets: [{ id: 'a/b', upstream: 'x' }] }).problems?.[0]?.detail).toMatch(/^must be 1 to 50/);
  });

  it('has problems that name fields and contain no values', () => {
    const { problems } = read({ successRedirectUrl: 'https://user:secret@permits.example.org/', prompt: 'secret' });
    expect(problems?.map(({ field }) => field)).toEqual(['prompt', 'successRedirectUrl']);
    expect(JSON.stringify(problems)).not.toContain('secret');
  });

  it('loses redirect URIs that break a rule, with reasons that contain no values, and keeps the others normalised', () => {
    const good = 'https://permits.example.org/cb';
    const redirectUris = ['https://*', 'HTTPS://Permits.example.org:443/cb', 'https://a/../secret', good];
    const { client, leftOut } = read({ redirectUris });
    expect(client?.redirectUris).toEqual([good]);
    expect(leftOut).toEqual([
      'redirectUris[0]: must not have a wildcard in its host',
      'redirectUris[2]: must not have a dot segment',
    ]);
  });

  it('may have 100 redirect URIs, and loses the others', () => {
    const uris = (count: number) => Array.from({ length: count }, (_, index) => `https://permits.example.org/${index}`);
    expect(read({ redirectUris: uris(100) })).toMatchObject({ client: { redirectUris: uris(100) }, leftOut: [] });
    expect(read({ redirectUris: uris(101) })).toMatchObject({
      client: { redirectUris: uris(100) },
      leftOut: ['redirectUris[100] and later: a client has at most 100 redirect URIs of 16384 characters together'],
    });
    const long = uris(9).map((uri) => uri.padEnd(2_000, 'x'));
    expect(read({ redirectUris: long })).toMatchObject({
      client: { redirectUris: long.slice(0, 8) },
      leftOut: ['redirectUris[8] and later: a client has at most 100 redirect URIs of 16384 characters together'],
    });
    const filling = [...long.slice(0, 8), 'https://permits.example.org/'.padEnd(384, 'x')];
    expect(read({ redirectUris: filling })).toMatchObject({ client: { redirectUris: filling }, leftOut: [] });
  });

  it('may have addresses, and scopes together, of 2,000 characters, and a hint of 200', () => {
    const entry = {
      successRedirectUrl: `/${'a'.repeat(1_999)}`,
      failureRedirectUrl: `/${'b'.repeat(1_999)}`,
      authCallbackUrl: 'https://permits.example.org/'.padEnd(2_000, 'x'),
      idpHint: 'a'.repeat(200),
    };
    expect(read(entry).client).toMatchObject(entry);
    const scope = ['openid', 'a'.repeat(1_000), 'b'.repeat(992)];
    expect(read({ scope }).client).toMatchObject({ scope });
    const { problems } = read({ scope: [...scope.slice(0, 2), 'b'.repeat(993)] });
    expect(problems).toEqual([{ field: 'scope', detail: 'must have at most 2000 characters' }]);
  });

  it('may have its scopes in one text', () => {
    expect(read({ scope: 'email  profile' }).client?.scope).toEqual(['openid', 'email', 'profile']);
  });
});

describe('the targets of a client', () => {
  const forms = { id: 'forms', upstream: 'urn:example:platform:form-service:v1' };

  it('may be a list of ids and upstreams', () => {
    expect(targetsOf([forms])).toEqual([forms]);
  });

  it('may be a map by id', () => {
    expect(targetsOf({ forms })).toEqual([forms]);
    expect(targetsOf({ forms: { upstream: forms.upstream } })).toEqual([forms]);
    expect(targetsOf({ forms: forms.upstream })).toEqual([forms]);
  });

  it('may be texts, which name platform services', () => {
    const files = { id: 'file-service', upstream: 'urn:example:platform:file-service' };
    expect(targetsOf(['file-service'])).toEqual([files]);
    expect(targetsOf([{ id: 'file-service', upstream: 'file-service' }])).toEqual([files]);
  });

  it.each(['urn:example:platform:form-service', 'urn:example:blue-river:permits', 'urn:example:blue-river:permits:v2'])(
    'have the URN of a service or an API as upstream: %s',
    (upstream) => {
      expect(targetsOf([{ id: 'x', upstream }])).toEqual([{ id: 'x', upstream }]);
    },
  );

  it.each([
    ['a resource', [{ id: 'x', upstream: 'urn:example:platform:form-service:v1:/forms' }]],
    ['another prefix', [{ id: 'x', upstream: 'urn:other:platform:form-service' }]],
    ['a longer prefix', [{ id: 'x', upstream: 'urn:example2:platform:form-service' }]],
    ['a namespace alone', [{ id: 'x', upstream: 'urn:example:platform' }]],
    ['an empty element', [{ id: 'x', upstream: 'urn:example::form-service' }]],
    ['a URL', [{ id: 'x', upstream: 'https://forms.example.org' }]],
    ['no upstream', [{ id: 'x' }]],
    ['no id', [{ upstream: 'form-service' }]],
    ['an id with a slash', [{ id: 'x/y', upstream: 'form-service' }]],
    ['another id than its key', { x: { id: 'y', upstream: 'form-service', extra: 1 }, y: 'form-service' }],
    ['one id twice', [forms, forms]],
    ['a text for a list', 'form-service'],
    ['a number in it', [1]],
  ])('cannot have %s', (_, targets) => {
    expect([...new Set(fieldsOf({ targets }))]).toEqual(['targets']);
  });
});
