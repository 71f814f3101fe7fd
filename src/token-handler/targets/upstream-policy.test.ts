import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AllowedDomain, isAllowedUpstream, isPlatformUrn, parseAllowedDomain } from './upstream-policy.ts';

const list = (entries: string) => entries.split(',').map((entry) => parseAllowedDomain(entry) as AllowedDomain);
const allows = (entries: string, url: string) => isAllowedUpstream(url, list(entries));

describe('an entry of UPSTREAM_ALLOWED_DOMAINS', () => {
  it('allows exactly its host, in any case', () => {
    for (const url of ['https://api.example.ca', 'http://API.Example.CA/x', 'https://api.example.ca/a?b#c'])
      expect(allows('api.example.ca', url)).toBe(true);
    expect(allows('API.Example.CA', 'https://api.example.ca')).toBe(true);
    for (const host of [
      'example.ca',
      'x.api.example.ca',
      'api.example.ca.evil.org',
      'xapi.example.ca',
      'api.example.c',
    ])
      expect(allows('api.example.ca', `https://${host}`)).toBe(false);
  });

  it('with a wildcard matches subdomains at any depth and not the bare domain', () => {
    for (const host of ['a.example.ca', 'a.b.c.example.ca', 'A.EXAMPLE.CA'])
      expect(allows('*.example.ca', `https://${host}`)).toBe(true);
    for (const host of ['example.ca', 'evilexample.ca', 'a.example.ca.org', '.example.ca', 'a..example.ca'])
      expect(allows('*.example.ca', `https://${host}`)).toBe(false);
  });

  it('with a port allows only that port; a URL without a port has the default port of its scheme', () => {
    expect(allows('example.ca:8443', 'https://example.ca:8443/x')).toBe(true);
    expect(allows('example.ca:8443', 'https://example.ca')).toBe(false);
    expect(allows('example.ca:443', 'https://example.ca')).toBe(true);
    expect(allows('example.ca:443', 'http://example.ca:443')).toBe(true);
    expect(allows('example.ca:443', 'http://example.ca')).toBe(false);
    expect(allows('example.ca:80', 'http://example.ca')).toBe(true);
    expect(allows('example.ca:80', 'https://example.ca')).toBe(false);
    // An empty port means the default port of the scheme (RFC 3986 section 3.2.3).
    expect(allows('example.ca:443', 'https://example.ca:/x')).toBe(true);
    expect(allows('example.ca:80', 'https://example.ca:')).toBe(false);
    expect(allows('*.example.ca:8080', 'http://a.example.ca:8080')).toBe(true);
    expect(allows('*.example.ca:8080', 'http://a.example.ca:8081')).toBe(false);
  });

  it('without a port allows any port', () => {
    for (const port of ['', ':', ':1', ':443', ':8443', ':65535'])
      expect(allows('example.ca,*.example.ca', `https://a.example.ca${port}`)).toBe(true);
  });

  it('may have any port from 1 to 65535', () => {
    for (const port of [1, 65_535]) expect(parseAllowedDomain(`a.ca:${port}`)).toEqual({ ...list('a.ca')[0], port });
  });

  it('matches an IPv6 address that is abbreviated differently in the URL', () => {
    expect(allows('[::1]', 'http://[0:0:0:0:0:0:0:1]/x')).toBe(true);
    expect(allows('[::1]', 'http://[0:0:0:0:0:0:0:2]/x')).toBe(false);
  });

  it('never allows a host that the URL parser reads as an IP address, even if the entry has the same text', () => {
    const entry = (host: string, isWildcard = false) => [{ host, isWildcard }];
    for (const host of ['0x7f.1', '127.1', '0177.0.0.1'])
      expect([host, isAllowedUpstream(`http://${host}`, entry(host))]).toEqual([host, false]);
    expect(isAllowedUpstream('http://10.0.0.5', entry('0.5', true))).toBe(false);
  });

  it('must list an IPv4 address explicitly', () => {
    expect(allows('10.0.0.5', 'http://10.0.0.5')).toBe(true);
    expect(allows('10.0.0.5:8080', 'http://10.0.0.5:8080')).toBe(true);
    expect(allows('10.0.0.5:8080', 'http://10.0.0.5')).toBe(false);
    expect(allows('10.0.0.5', 'http://10.0.0.6')).toBe(false);
    expect(allows('*.example.ca,*.ca', 'http://10.0.0.5')).toBe(false);
  });

  it('does not allow a listed IPv4 address in another notation', () => {
    const other = [
      '10.5',
      '167772165',
      '0x0a000005',
      '012.0.0.5',
      '10.0.0.5.',
      '10.0.5',
      '１０.0.0.5',
      '[::ffff:10.0.0.5]',
    ];
    for (const host of other) expect(allows('10.0.0.5', `http://${host}`)).toBe(false);
  });

  it('may have an IPv6 address with or without brackets, and matches it however it is abbreviated', () => {
    for (const entry of ['[2001:db8::1]', '2001:db8::1', '[2001:DB8:0::1]', '2001:db8:0:0:0:0:0:1']) {
      expect(allows(entry, 'http://[2001:db8::1]:8080/x')).toBe(true);
      expect(allows(entry, 'http://[2001:db8::2]')).toBe(false);
    }
    expect(allows('[::1]:8080', 'http://[::1]:8080')).toBe(true);
    expect(allows('[::1]:8080', 'http://[::1]:8081')).toBe(false);
    expect(allows('127.0.0.1', 'http://[::ffff:127.0.0.1]')).toBe(false);
  });

  it('matches an internationalised host name only in the form in which the entry has it, Unicode or Punycode', () => {
    expect(allows('bücher.example', 'https://bücher.example')).toBe(true);
    expect(allows('bücher.example', 'https://BÜCHER.example')).toBe(true);
    expect(allows('*.bücher.example', 'https://a.bücher.example')).toBe(true);
    expect(allows('xn--bcher-kva.example', 'https://xn--bcher-kva.example')).toBe(true);
    for (const host of ['ΟΔΟΣ.example', 'οδοσ.example', 'ΟΔΟΣ.EXAMPLE']) {
      expect(allows('ΟΔΟΣ.example,*.ΟΔΟΣ.example', `https://${host}`)).toBe(true);
      expect(allows('*.ΟΔΟΣ.example', `https://a.${host}`)).toBe(true);
    }
    // The names differ: the final sigma ς is not converted to σ (UTS 46, non-transitional processing).
    expect(allows('ΟΔΟΣ.example', 'https://οδος.example')).toBe(false);
    expect(allows('οδος.example', 'https://οδος.example')).toBe(true);
    expect(allows('bücher.example', 'https://xn--bcher-kva.example')).toBe(false);
    expect(allows('xn--bcher-kva.example', 'https://bücher.example')).toBe(false);
    // The URL parser converts these full-width and ideographic characters into ASCII characters.
    for (const host of ['api。example.ca', 'evil.org／.example.ca', 'evil.org＃.example.ca', 'ａpi.example.ca'])
      expect(allows('api.example.ca,*.api.example.ca', `https://${host}`)).toBe(false);
  });

  it('matches a host with a trailing dot only if the entry has one', () => {
    expect(allows('example.ca', 'https://example.ca.')).toBe(false);
    expect(allows('example.ca.', 'https://example.ca.')).toBe(true);
    expect(allows('*.example.ca', 'https://a.example.ca.')).toBe(false);
  });

  it('is refused if it is not a host name, a wildcard or an address, with an optional port', () => {
    const entries = ['', '*', '*.', 'a.*.ca', '*example.ca', '**.example.ca', '.example.ca', 'https://example.ca'];
    entries.push('example..ca', '*.example..ca', 'example.ca..', '..example.ca');
    entries.push('example.ca/x', 'user@example.ca', 'example.ca:', 'example.ca:0', 'example.ca:65536', 'example.ca:x');
    entries.push(
      'a b',
      '*.10.0.0.5',
      '*.[::1]',
      '[::1',
      '10.5',
      '0x0a.0.0.5',
      'a%2eca',
      '::1]:80',
      'a\\b',
      'a?b',
      'a#b',
    );
    for (const entry of entries) expect(parseAllowedDomain(entry)).toBeUndefined();
  });
});

describe('a URL', () => {
  it('is accepted only with http or https and without credentials', () => {
    expect(allows('example.ca', 'http://example.ca')).toBe(true);
    const urls = [
      'ftp://example.ca',
      'ws://example.ca',
      'file:///example.ca',
      'javascript:example.ca',
      'example.ca',
      '//example.ca',
    ];
    urls.push(
      'https://user@example.ca',
      'https://user:secret@example.ca',
      'https://:@example.ca',
      'https://@example.ca',
    );
    urls.push(
      'https:example.ca',
      'https:/example.ca',
      'https:///example.ca',
      'https:\\\\example.ca',
      'https://example.ca\\@evil.org',
    );
    urls.push(
      'https://evil.org\\.example.ca',
      'https://evil.org#@example.ca',
      'https://evil.org?@example.ca',
      'https://exam\tple.ca',
    );
    urls.push(
      ' https://example.ca',
      'https://example.ca\n',
      'https://ex%61mple.ca',
      'https://example.ca:x',
      'https://example.ca:99999',
      '',
    );
    for (const url of urls) expect([url, allows('example.ca', url)]).toEqual([url, false]);
  });

  it('that is allowed never leads to a host that no entry names, whatever its parts', () => {
    const parts = [
      'example.ca',
      'evil.org',
      '.',
      '@',
      ':',
      '/',
      '\\',
      '#',
      '?',
      '%2e',
      '。',
      '／',
      '[',
      ']',
      ' ',
      '\t',
      'a',
      '80',
      '*',
    ];
    const allowed = list('example.ca,*.example.ca');
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 8 }), (items) => {
        const url = `http://${items.join('')}`;
        if (!isAllowedUpstream(url, allowed)) return;
        expect(new URL(url).hostname).toMatch(/^(?:.+\.)?example\.ca$/);
      }),
      { numRuns: 20_000 },
    );
  });
});

describe('a URN', () => {
  it('belongs to the platform only if its namespace is exactly that of the platform', () => {
    expect(isPlatformUrn('urn:example:platform:form-service', 'urn:example')).toBe(true);
    for (const urn of [
      'urn:example:platforms:x',
      'urn:example:Platform:x',
      'urn:example:demo:platform',
      'urn:ads:platform:x',
    ])
      expect(isPlatformUrn(urn, 'urn:example')).toBe(false);
  });
});
