// Tests which addresses are valid as the callbackUrl or the landing page of a sign-in.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressProblem,
  callbackUrlProblem,
  fallbackCallbackUrl,
  isLocalPath,
  landingUrl,
  refusalUrl,
} from './sign-in.ts';

const good = 'https://app.example.org/token-handler/clients/web/callback';

describe('callbackUrl', () => {
  it.each([
    good,
    'http://localhost:4200/token-handler/clients/web/callback',
    'https://app.example.org:8443/a/b/clients/web/callback',
    'https://app.example.org/clients/web/callback',
  ])('is valid: %s', (text) => {
    expect(callbackUrlProblem(text, 'web')).toBeUndefined();
  });

  it('has percent-encoded spaces if the id of the client has spaces', () => {
    expect(callbackUrlProblem('https://app.example.org/clients/my%20app/callback', 'my app')).toBeUndefined();
    expect(callbackUrlProblem('https://app.example.org/clients/my app/callback', 'my app')).toBeDefined();
  });

  it.each([
    ['relative', '/token-handler/clients/web/callback'],
    ['of a missing scheme', '//app.example.org/clients/web/callback'],
    ['of another scheme', 'javascript:alert(1)//clients/web/callback'],
    ['ftp', 'ftp://app.example.org/clients/web/callback'],
    ['with a fragment', `${good}#x`],
    ['with an empty fragment', `${good}#`],
    ['with a query', `${good}?x=1`],
    ['with credentials', 'https://user:secret@app.example.org/clients/web/callback'],
    ['with a user', 'https://app.example.org@evil.example/clients/web/callback'],
    ['of another client', 'https://app.example.org/clients/other/callback'],
    ['with more behind', `${good}/more`],
    ['with the ending in its query', 'https://evil.example/?/clients/web/callback'],
    ['with the ending in its fragment', 'https://evil.example/#/clients/web/callback'],
    ['with a backslash', 'https://evil.example\\clients/web/callback'],
    ['with dot segments', 'https://app.example.org/x/../clients/web/callback'],
    ['with encoded dot segments', 'https://app.example.org/x/%2e%2E/clients/web/callback'],
    ['with a new line', 'https://app.example.org/\nclients/web/callback'],
    ['with a tab', 'https://app.exa\tmple.org/clients/web/callback'],
    ['without a host', 'https:///clients/web/callback'],
    ['with one slash', 'https:/app.example.org/clients/web/callback'],
    ['of nothing', ''],
  ])('is invalid: %s', (_what, text) => {
    expect(callbackUrlProblem(text, 'web')).toBeDefined();
  });

  it.each([
    ['of a host that looks like the path', 'https://clients/web/callback'],
    ['of another scheme before an address', `javascript:/*${good}`],
    ['of a scheme with a longer name', `x${good}`],
  ])('is invalid: %s', (_what, text) => {
    expect(callbackUrlProblem(text, 'web')).toBeDefined();
  });

  it.each([
    ['/clients/web/callback', 'must be an absolute http or https URL'],
    ['https://app.example.org:99999/clients/web/callback', 'must be an absolute http or https URL'],
    [`${good}#x`, 'must not have a fragment'],
    ['https://user@app.example.org/clients/web/callback', 'must not contain credentials'],
    [`${good}?x=1`, 'must not have a query'],
    ['https://app.example.org/x/../clients/web/callback', 'must not contain dot segments'],
    ['https://app.example.org/clients/other/callback', 'must end in /clients/web/callback'],
  ])('%s is refused with the reason', (text, reason) => {
    expect(callbackUrlProblem(text, 'web')).toBe(reason);
  });

  it('has the host that a browser requests, if it is accepted', () => {
    const pieces = fc.constantFrom(
      '/',
      '\\',
      '@',
      ':',
      '?',
      '#',
      '..',
      '%2e',
      '%2f',
      'evil.example',
      '\t',
      '\n',
      ' ',
      'é',
      'a',
    );
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
        const url = `https://app.example.org${parts.join('')}/clients/web/callback`;
        if (callbackUrlProblem(url, 'web') !== undefined) return;
        accepted += 1;
        const [authority = ''] = url.slice('https://'.length).split('/');
        expect(authority).toMatch(/^[\p{L}\d.:%-]+$/u);
        expect(new URL(url).host).toBe(new URL(`https://${authority}`).host);
        expect(new URL(url).pathname.endsWith('/clients/web/callback')).toBe(true);
        expect([new URL(url).username, new URL(url).search, new URL(url).hash]).toEqual(['', '', '']);
      }),
      { numRuns: 5_000 },
    );
    expect(accepted).toBeGreaterThan(500);
  });
});

describe('an address that a code may be sent to', () => {
  it.each([
    ['https://app.example.org', undefined],
    ['https://app.example.org.', undefined],
    ['http://app.example.org/a/...', undefined],
    ['https://app.example.org/x/..', 'must not contain dot segments'],
    ['https://app.example.org/%2E/', 'must not contain dot segments'],
    ['https://app.example.org/a b', 'must be an absolute http or https URL'],
    ['https://app.example.org/a\nb', 'must be an absolute http or https URL'],
  ])('%s: %s', (text, problem) => {
    expect(addressProblem(text)).toBe(problem);
  });
});

describe('returnTo', () => {
  it('has at most 2,000 characters', () => {
    expect(isLocalPath(`/${'x'.repeat(1_999)}`)).toBe(true);
    expect(isLocalPath(`/${'x'.repeat(2_000)}`)).toBe(false);
  });

  it.each(['/', '/here', '/here?x=1&y=%2F#part', '/a/b/', '/%C3%A9', '/?to=//other'])('is valid: %s', (text) => {
    expect(isLocalPath(text)).toBe(true);
  });

  it.each([
    '',
    'here',
    'https://evil.example/',
    'javascript:alert(1)',
    '//evil.example',
    '///evil.example',
    '/.//evil.example',
    '/here/..//evil.example',
    '/here/%2e%2e/%2fevil.example',
    '/\\evil.example',
    '\\/evil.example',
    '/%2Fevil.example',
    '/%2fevil.example',
    '/%5Cevil.example',
    '/%5cevil.example',
    '/%09/evil.example',
    '/%0a/evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/\r\nSet-Cookie: a=b',
    '/ /evil.example',
    '/a\\b',
    `/${'x'.repeat(2_000)}`,
  ])('is refused because it may lead elsewhere: %j', (text) => {
    expect(isLocalPath(text)).toBe(false);
  });

  it('never leaves the origin if it is accepted, also if a proxy decodes it', () => {
    const pieces = fc.constantFrom(
      '/',
      '\\',
      '%2f',
      '%5c',
      '.',
      '@',
      ':',
      '?',
      '#',
      'evil.example',
      '\t',
      '\n',
      ' ',
      'a',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
        const text = parts.join('');
        if (!isLocalPath(text)) return;
        expect(new URL(text, 'https://app.example.org/x/y').origin).toBe('https://app.example.org');
        const path = text.split(/[?#]/, 1)[0] ?? '';
        expect(new URL(decodeURIComponent(path), 'https://app.example.org').origin).toBe('https://app.example.org');
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('the landing address of a sign-in', () => {
  const site = 'https://app.example.org';
  it('is the given path or address, or the root of the site', () => {
    expect(landingUrl(site, '/here')).toBe(`${site}/here`);
    expect(landingUrl(site, 'https://other.example.org/x')).toBe('https://other.example.org/x');
    expect(landingUrl(site, undefined)).toBe(`${site}/`);
    expect(landingUrl(`${site}/a/b`, undefined)).toBe(`${site}/`);
  });

  it('after a refusal is failureRedirectUrl or the root, with the error in the query', () => {
    expect(refusalUrl(site, undefined, 'access_denied')).toBe(`${site}/?error=access_denied`);
    expect(refusalUrl(`${site}/a/b`, undefined, 'access_denied')).toBe(`${site}/?error=access_denied`);
    expect(refusalUrl(site, '/sorry?x=1', 'access_denied')).toBe(`${site}/sorry?x=1&error=access_denied`);
  });

  it('without a callbackUrl is based on the path of authCallbackUrl and the host and protocol of the request', () => {
    expect(fallbackCallbackUrl('https://old.example.org/clients/web/callback', 'https', 'new.example.org:8443')).toBe(
      'https://new.example.org:8443/clients/web/callback',
    );
  });
});
