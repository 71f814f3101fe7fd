// Tests the validation of redirect URIs.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redirectUriProblem, rootsOf } from './redirect-uri.ts';

const strict = { allowInsecure: false };

describe('a redirect URI', () => {
  it.each([
    'https://permits.example.org/token-handler/clients/permits-web/callback',
    'https://permits.example.org',
    'https://permits.example.org:8443/cb?x=1&y=%20',
    'https://münchen.example/cb',
    'https://192.0.2.1/cb',
    'HTTPS://permits.example.org/cb',
  ])('is absolute and https: %s', (uri) => {
    expect(redirectUriProblem(uri, strict)).toBeUndefined();
  });

  it.each([
    'http://localhost/cb',
    'http://localhost:4200/token-handler/clients/permits-web/callback',
    'http://127.0.0.1:3000/cb',
    'http://[::1]:3000/cb',
  ])('may be http on this machine: %s', (uri) => {
    expect(redirectUriProblem(uri, strict)).toBeUndefined();
  });

  it.each([
    'http://permits.example.org/cb',
    'http://localhost.example.org/cb',
    'http://127.0.0.2/cb',
    'http://[::2]/cb',
    'http://0.0.0.0/cb',
  ])('must not be http on another host, unless ALLOW_INSECURE_REDIRECT_URIS is set: %s', (uri) => {
    expect(redirectUriProblem(uri, strict)).toMatch(/must be https/);
    expect(redirectUriProblem(uri, { allowInsecure: true })).toBeUndefined();
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
    'https://',
    'https://permits.example.org:99999/cb',
    'https://permits.example.org/c b',
    ' https://permits.example.org/cb',
    'https://permits.example.org/cb\r\nSet-Cookie: x=1',
    'https://permits.exam\tple.org/cb',
    'https://[::1/cb',
  ])('must be an absolute http or https URL: %j', (uri) => {
    expect(redirectUriProblem(uri, { allowInsecure: true })).toMatch(/absolute http or https/);
  });

  it.each(['https://permits.example.org/cb#', 'https://permits.example.org/cb#x', 'http://localhost/#/cb'])(
    'must not have a fragment: %s',
    (uri) => {
      expect(redirectUriProblem(uri, strict)).toMatch(/fragment/);
    },
  );

  it.each([
    'https://user@permits.example.org/cb',
    'https://user:password@permits.example.org/cb',
    'https://@permits.example.org/cb',
    'https://permits.example.org:443@evil.example/cb',
  ])('must not contain credentials: %s', (uri) => {
    expect(redirectUriProblem(uri, strict)).toMatch(/credentials/);
  });

  it('that is valid has a host, which parsing does not change', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string()), (text) => {
        if (redirectUriProblem(text, { allowInsecure: true }) !== undefined) return;
        const { protocol, hostname, username, password, hash } = new URL(text);
        expect(protocol).toMatch(/^https?:$/);
        expect(hostname).not.toBe('');
        expect([username, password, hash]).toEqual(['', '', '']);
      }),
    );
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
