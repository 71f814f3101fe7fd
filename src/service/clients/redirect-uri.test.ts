// Tests the validation and normalisation of redirect URIs.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  allowedRedirectUris,
  parseRedirectUri,
  redirectUriLimits,
  redirectUriRules,
  redirectUriSchema,
  rootsOf,
} from './redirect-uri.ts';

const strict = { allowInsecure: false, allowWildcardPaths: false };
const lenient = { allowInsecure: true, allowWildcardPaths: true };
const problemOf = (uri: string, rules = strict) => parseRedirectUri(uri, rules).problem;

describe('a redirect URI', () => {
  it.each([
    ['https://permits.example.org/token-handler/clients/permits-web/callback', undefined],
    ['https://permits.example.org', 'https://permits.example.org/'],
    ['https://permits.example.org:8443/cb?x=1&y=%20', undefined],
    ['https://permits.example.org/@cb', undefined],
    ['https://permits.example.org/.well-known/cb', undefined],
    ['https://permits.example.org/a..b/...', undefined],
    ['https://permits.example.org/cb?next=../x', undefined],
    ['https://permits.example.org/a%2Fb', undefined],
    ['https://permits.example.org/cb?x=100%25', undefined],
    ['https://münchen.example/cb', 'https://xn--mnchen-3ya.example/cb'],
    ['https://192.0.2.1/cb', undefined],
    ['https://[2001:DB8::1]:443/cb', 'https://[2001:db8::1]/cb'],
    ['HTTPS://Permits.Example.org:443/CB', 'https://permits.example.org/CB'],
    ['https://permits.example.org:/cb', 'https://permits.example.org/cb'],
    ['https://permits.example.org/café', 'https://permits.example.org/caf%C3%A9'],
  ])('is absolute and https, and is stored normalised: %s', (uri, normalised = uri) => {
    expect(parseRedirectUri(uri, strict)).toEqual({ uri: normalised });
  });

  it('has at most 2,000 characters after it was normalised', () => {
    const uriOf = (length: number) => 'https://permits.example.org/'.padEnd(length, 'x');
    expect([problemOf(uriOf(2_000)), problemOf(uriOf(2_001))]).toEqual([
      undefined,
      'must have at most 2000 characters',
    ]);
    expect(problemOf(`https://permits.example.org/${'é'.repeat(400)}`)).toBe('must have at most 2000 characters');
  });

  it.each([
    'http://localhost/cb',
    'http://localhost:4200/token-handler/clients/permits-web/callback',
    'http://127.0.0.1:3000/cb',
    'http://[::1]:3000/cb',
  ])('may be http on this machine: %s', (uri) => {
    expect(parseRedirectUri(uri, strict)).toEqual({ uri });
  });

  it.each([
    'http://permits.example.org/cb',
    'http://localhost.example.org/cb',
    'http://127.0.0.2/cb',
    'http://[::2]/cb',
    'http://0.0.0.0/cb',
    'http://localhost./cb',
  ])('must not be http on another host, unless ALLOW_INSECURE_REDIRECT_URIS is set: %s', (uri) => {
    expect(problemOf(uri)).toMatch(/must be https/);
    expect(parseRedirectUri(uri, { ...strict, allowInsecure: true })).toEqual({ uri });
  });

  it.each([
    '',
    'permits.example.org/cb',
    '/cb',
    '//permits.example.org/cb',
    'ftp://permits.example.org/cb',
    'javascript:alert(1)',
    'urn:ietf:wg:oauth:2.0:oob',
    'com.example.app:/cb',
    'https:/permits.example.org/cb',
    'https:permits.example.org/cb',
    'https:///permits.example.org/cb',
    'https:\\\\permits.example.org\\cb',
    'https://permits.example.org\\@evil.example/cb',
    'https://permits.example.org/\\..\\cb',
    'https://',
    'https://permits.example.org:99999/cb',
    'https://permits.example.org/c b',
    ' https://permits.example.org/cb',
    'https://permits.example.org/cb\r\nSet-Cookie: x=1',
    'https://permits.exam\tple.org/cb',
    'https://permits.example.org/c\u0001b',
    'https://permits.example.org/cb\u0085',
    'xhttps://permits.example.org/cb',
    'https://[::1/cb',
    '*',
    '*://permits.example.org/cb',
    'http*://permits.example.org/cb',
  ])('must be an absolute http or https URL: %j', (uri) => {
    expect(problemOf(uri, lenient)).toMatch(/absolute http or https/);
  });

  it.each(['https://permits.example.org/cb#', 'https://permits.example.org/cb#x', 'http://localhost/#/cb'])(
    'must not have a fragment: %s',
    (uri) => {
      expect(problemOf(uri, lenient)).toMatch(/fragment/);
    },
  );

  it.each([
    'https://user@permits.example.org/cb',
    'https://user:password@permits.example.org/cb',
    'https://@permits.example.org/cb',
    'https://permits.example.org:443@evil.example/cb',
    'https://*@permits.example.org/cb',
  ])('must not contain credentials: %s', (uri) => {
    expect(problemOf(uri, lenient)).toMatch(/credentials/);
  });

  it.each([
    'https://*',
    'https://*/',
    'https://*/cb',
    'https://*.example.org/cb',
    'https://permits.*/cb',
    'https://per*its.example.org/cb',
    'https://permits.example.org*/cb',
    'https://%2A.example.org/cb',
    'https://%2a/cb',
    'https://＊.example.org/cb',
  ])('must not have a wildcard in its host, whatever the settings: %s', (uri) => {
    for (const rules of [strict, lenient]) expect(problemOf(uri, rules)).toMatch(/wildcard in its host/);
  });

  it.each(['https://permits.example.org:*', 'https://permits.example.org:*/cb', 'https://permits.example.org:4*3/cb'])(
    'must not have a wildcard in its port, whatever the settings: %s',
    (uri) => {
      for (const rules of [strict, lenient]) expect(problemOf(uri, rules)).toMatch(/absolute http or https/);
    },
  );

  it.each(['https://permits.example.org/*', 'https://permits.example.org/a/*'])(
    'may end in /* only if ALLOW_WILDCARD_REDIRECT_PATHS is set: %s',
    (uri) => {
      expect(problemOf(uri)).toMatch(/must not contain \*/);
      expect(parseRedirectUri(uri, { ...strict, allowWildcardPaths: true })).toEqual({ uri });
    },
  );

  it.each([
    'https://permits.example.org/a*',
    'https://permits.example.org/*/cb',
    'https://permits.example.org/**',
    'https://permits.example.org/a/*/*',
    'https://permits.example.org/*?x=1',
    'https://permits.example.org/cb?*',
    'https://permits.example.org/cb?x=/*',
    'https://permits.example.org/%2A',
    'https://permits.example.org/%252a',
    'https://permits.example.org/*/',
  ])('must not have a wildcard anywhere else, whatever the settings: %s', (uri) => {
    expect(problemOf(uri)).toMatch(/must not contain \*/);
    expect(problemOf(uri, lenient)).toMatch(/contain \* only as a final \/\*/);
  });

  it.each([
    'https://a/../b',
    'https://permits.example.org/..',
    'https://permits.example.org/a/./b',
    'https://permits.example.org/a/.',
    'https://permits.example.org/a/%2e%2e/b',
    'https://permits.example.org/a/%2E./b',
    'https://permits.example.org/a/%252e%252e/b',
    'https://permits.example.org/a/..%2fb',
    'https://permits.example.org/a%2f..%2fb',
    'https://permits.example.org/a/..%5cb',
    'https://permits.example.org/a/..;/b',
    'https://permits.example.org/a/.%2e;x=1/b',
    'https://permits.example.org/../*',
    'https://permits.example.org/a%3f/%2e%2e/b',
  ])('must not have a dot segment, also encoded: %s', (uri) => {
    expect(problemOf(uri, lenient)).toMatch(/dot segment/);
  });

  it.each([
    'https://permits.example.org/%',
    'https://permits.example.org/%zz',
    'https://permits.example.org/%ff',
    'https://permits.example.org/cb%00',
    'https://permits.example.org/cb%0d%0aSet-Cookie:x',
    'https://permits.example.org/cb?x=%2500',
  ])('must not have invalid percent-encoding or encoded control characters: %s', (uri) => {
    expect(problemOf(uri, lenient)).toMatch(/percent-encoding/);
  });

  it.each(['https://.example.org/cb', 'https://a..b/cb', 'https://(a)/cb', 'https://a,b/cb', 'https://$host/cb'])(
    'must have a host name or an address: %s',
    (uri) => {
      expect(problemOf(uri, lenient)).toMatch(/must have a host name/);
    },
  );

  const text = fc.constantFrom(...'aA0.*%/:@?#;\\[]{} ', '%2e', '%2A', '%2f', '%5c', '%25', '..', '/*', '＊', '。');
  const uris = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    fc.string(),
    fc
      .tuple(fc.constantFrom('https://', 'http://', 'HTTPS://'), fc.array(text, { maxLength: 12 }))
      .map(([scheme, parts]) => `${scheme}${parts.join('')}`),
    fc.array(text, { maxLength: 12 }).map((parts) => `https://permits.example.org/${parts.join('')}`),
  );

  it('that is valid is exact, unambiguous and stable, whatever the text', () => {
    fc.assert(
      fc.property(uris, (given) => {
        const { uri } = parseRedirectUri(given, { ...strict, allowInsecure: true });
        if (uri === undefined) return;
        const { protocol, hostname, username, password, hash, href, pathname } = new URL(uri);
        expect(href).toBe(uri);
        expect(protocol).toMatch(/^https?:$/);
        expect(hostname).toMatch(/^[\w.:[\]-]+$/);
        expect([username, password, hash]).toEqual(['', '', '']);
        expect(uri).not.toContain('*');
        expect(decodeURIComponent(pathname).split(/[/\\]/)).not.toContain('..');
        expect(decodeURIComponent(pathname).split(/[/\\]/)).not.toContain('.');
        expect(parseRedirectUri(uri, { ...strict, allowInsecure: true })).toEqual({ uri });
      }),
      { numRuns: 500 },
    );
  });

  it('with a wildcard differs from an exact one only by its final /*', () => {
    let accepted = 0;
    const ending = fc.constantFrom('', '*', '/*');
    fc.assert(
      fc.property(fc.oneof(uris, fc.webUrl()), ending, (given, end) => {
        const { uri } = parseRedirectUri(`${given}${end}`, lenient);
        if (!uri?.includes('*')) return;
        accepted += 1;
        expect(uri.indexOf('*')).toBe(uri.length - 1);
        const exact = uri.slice(0, -1);
        expect(parseRedirectUri(exact, { ...strict, allowInsecure: true })).toEqual({ uri: exact });
      }),
      { numRuns: 2_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

describe('the redirect URIs of a client', () => {
  it.each([
    ['none', [], 0],
    ['100 short ones', Array(100).fill('https://a/'), 100],
    ['101 short ones', Array(101).fill('https://a/'), 100],
    ['16,384 characters together', ['x'.repeat(8_192), 'x'.repeat(8_192)], 2],
    ['16,385 characters together', ['x'.repeat(8_192), 'x'.repeat(8_193)], 1],
    ['a first one that is too long alone', ['x'.repeat(16_385), 'x'], 0],
  ])('are allowed up to 100, and up to 16,384 characters: %s', (_what, uris, allowed) => {
    expect(allowedRedirectUris(uris)).toBe(allowed);
  });

  it('have limits that are named to the person who registers the client', () => {
    expect(redirectUriLimits).toBe('at most 100 redirect URIs of 16384 characters together');
  });
});

it('a logout may return to the roots of the hosts', () => {
  const uris = [
    'https://permits.example.org/a/cb',
    'https://permits.example.org/b/cb',
    'https://permits.example.org:8443/cb',
    'http://localhost:4200/cb',
  ];
  expect(rootsOf(uris)).toEqual([
    'https://permits.example.org/',
    'https://permits.example.org:8443/',
    'http://localhost:4200/',
  ]);
  expect(rootsOf([])).toEqual([]);
});

it('the operator decides by two settings which redirect URIs are allowed', () => {
  for (const insecure of [true, false])
    for (const wildcard of [true, false])
      expect(
        redirectUriRules({ ALLOW_INSECURE_REDIRECT_URIS: insecure, ALLOW_WILDCARD_REDIRECT_PATHS: wildcard }),
      ).toEqual({ allowInsecure: insecure, allowWildcardPaths: wildcard });
});

it('a redirect URI in a request is stored normalised, or refused with the problem', () => {
  const schema = redirectUriSchema(strict);
  expect(schema.parse('HTTPS://Permits.example.org:443')).toBe('https://permits.example.org/');
  const { error } = schema.safeParse('http://permits.example.org/cb');
  expect(error?.issues.map(({ message }) => message)).toEqual([problemOf('http://permits.example.org/cb')]);
  expect(schema.safeParse(7).success).toBe(false);
});
