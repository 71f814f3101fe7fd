import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { trickPaths } from '../../../test/support/path-tricks.ts';
import {
  isHarmless,
  isTargetRequest,
  isTargetRequestInAnyForm,
  parseTargetAddress,
  targetPatternOf,
  upstreamPath,
} from './path.ts';

const prefix = '/token-handler/v1/targets/';
const relayed = (url: string, base = '/form/v1') => {
  const address = parseTargetAddress(url);
  return address && upstreamPath(base, address);
};

describe('the path at the upstream', () => {
  it('is the base path followed by the rest of the request’s path, byte for byte', () => {
    const paths = {
      '/forms': '/form/v1/forms',
      '/forms/': '/form/v1/forms/',
      '/': '/form/v1/',
      '': '/form/v1',
      '?a=1': '/form/v1?a=1',
      '/a//b': '/form/v1/a//b',
      '/a%20b/%C3%A9/%e2%82%ac': '/form/v1/a%20b/%C3%A9/%e2%82%ac',
      '/100%25/a%25b': '/form/v1/100%25/a%25b',
      "/~a.b_c-d!$&'()*+,;=:@": "/form/v1/~a.b_c-d!$&'()*+,;=:@",
      '/.well-known/x': '/form/v1/.well-known/x',
      '/.../a..b/..c/d../.e': '/form/v1/.../a..b/..c/d../.e',
      '/v1.2;version=3/x': '/form/v1/v1.2;version=3/x',
      '/%2e.x/a%2eb': '/form/v1/%2e.x/a%2eb',
      '/urn:example:x:/forms/1': '/form/v1/urn:example:x:/forms/1',
      '/%F0%9F%98%80': '/form/v1/%F0%9F%98%80',
      '/%C2%BD': '/form/v1/%C2%BD',
    };
    for (const [path, expected] of Object.entries(paths)) expect(relayed(`${prefix}forms${path}`)).toBe(expected);
  });

  it('begins with a slash if the upstream has no base path', () => {
    expect(relayed(`${prefix}forms`, '')).toBe('/');
    expect(relayed(`${prefix}forms?x`, '')).toBe('/?x');
    expect(relayed(`${prefix}forms/a`, '')).toBe('/a');
  });

  it('is refused if the upstream has no base path and may take the path for another host', () => {
    expect(relayed(`${prefix}forms//evil.example/x`, '')).toBeUndefined();
    expect(relayed(`${prefix}forms//evil.example/x`, '/base')).toBe('/base//evil.example/x');
  });

  it('keeps the query byte for byte, including dot segments and separators', () => {
    const queries = [
      '?',
      '?a=b%2Fc/../d&&e=%zz',
      '??',
      '?a=1?b=/%2e%2e/',
      '?%00%0d%0a',
      '?a=\\..\\',
      '?x=\u00ff\u00e9',
      '?#',
    ];
    for (const query of queries) {
      expect(relayed(`${prefix}forms/x${query}`)).toBe(`/form/v1/x${query}`);
      expect(relayed(`${prefix}forms${query}`)).toBe(`/form/v1${query}`);
    }
  });

  it('may contain encoded question marks, number signs and currency signs, and names that contain dots', () => {
    const paths = ['/report%3f.pdf', '/what%3F', '/%3f', '/a%23b', '/%23', '/a..b', '/a..%3f', '/x..%C2%A5', '/...%3f'];
    paths.push(
      '/price%20%C2%A5100',
      '/%E2%82%A9',
      '/1.5%E2%82%A9',
      '/%C2%A5.5',
      '/100%25%C3%A9t%C3%A9',
      '/50%EF%BC%85',
    );
    paths.push('/%E3%81%A5..', '/%E5%A0%B1%E5%91%8A%E3%80%82', '/a%C2%B7b', '/%E0%A4%B9%E0%A4%BF', '/e%CC%81', '/v1:x');
    for (const path of paths) expect([path, relayed(`${prefix}forms${path}`)]).toEqual([path, `/form/v1${path}`]);
  });

  it.each(trickPaths)('is refused for the hostile path %s', (path) => {
    expect(isHarmless(path)).toBe(false);
    expect(relayed(`${prefix}forms${path}`)).toBeUndefined();
    expect(relayed(`${prefix}forms${path}?q=1`)).toBeUndefined();
    expect(relayed(`${prefix}forms/a${path}/b`, '')).toBeUndefined();
  });

  it('never leaves the base path, however parts of hostile paths are combined', () => {
    const parts = [
      '.',
      '..',
      '/',
      '\\',
      '%2e',
      '%2E',
      '%2f',
      '%5c',
      '%25',
      '25',
      '2e',
      '2f',
      '%',
      ';',
      '%3b',
      'a',
      '%c0%ae',
    ].concat([
      '%00',
      '%09',
      ' ',
      '%20',
      '%u002e',
      '%ef%bc%8e',
      '%e2%80%a5',
      '%ef%bc%8f',
      '?',
      '#',
      '%c0',
      '%af',
      'x=1',
    ]);
    const path = fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((items) => `/${items.join('')}`);
    fc.assert(
      fc.property(path, fc.constantFrom('', '/form/v1'), (tail, base) => {
        const answer = relayed(`${prefix}forms${tail}`, base);
        if (answer === undefined) return;
        const [written = '', ...query] = answer.split('?');
        expect(answer).toBe(base + tail);
        for (const reading of readings(written)) expect(reading === base || reading.startsWith(`${base}/`)).toBe(true);
        if (query.length > 0) expect(answer.endsWith(tail.slice(tail.indexOf('?')))).toBe(true);
      }),
      { numRuns: 30_000 },
    );
  });

  it('never leaves the base path, even if a server folds, truncates and decodes it repeatedly, in any order', () => {
    const path = fc.array(fc.constantFrom(...hostileParts), { maxLength: 8 }).map((items) => `/${items.join('')}`);
    const steps = fc.array(fc.constantFrom(...hostileSteps), { minLength: 1, maxLength: 4 });
    let forwarded = 0;
    fc.assert(
      fc.property(path, steps, (tail, decoder) => {
        if (relayed(`${prefix}forms${tail}`) === undefined) return;
        forwarded += 1;
        const reading = decoder.reduce((text, step) => step(text), tail);
        expect(climbs(reading)).toBe(false);
      }),
      { numRuns: 30_000 },
    );
    // The test proves something only if the proxy would forward enough of the generated paths.
    expect(forwarded).toBeGreaterThan(3_000);
  });

  it('is forwarded unchanged, and is below the base path for the URL parser as well', () => {
    fc.assert(
      fc.property(fc.webPath(), fc.webQueryParameters(), (path, query) => {
        const answer = relayed(`${prefix}forms${path}?${query}`);
        if (answer === undefined) return;
        const { pathname } = new URL(answer, 'http://upstream.example');
        expect(pathname.startsWith('/form/v1')).toBe(true);
        expect(answer).toBe(`/form/v1${path}?${query}`);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('the target id', () => {
  it('is decoded, while the path and the query after it stay as the client wrote them', () => {
    const ids = { 'my%20target_1': 'my target_1', 'form%2Dservice': 'form-service', A1: 'A1', '': '' };
    for (const [written, targetId] of Object.entries(ids))
      expect(parseTargetAddress(`${prefix}${written}/a%20b?c`)).toEqual({
        targetId,
        path: '/a%20b',
        query: '?c',
      });
  });

  it('is rejected if it is a dot segment or contains a separator', () => {
    for (const id of ['..', '.', '%2e%2e', 'a%2fb', 'a%5cb', '%252e%252e', 'a%00', '%c0%ae', '%', '..;x', 'a\\b'])
      expect(parseTargetAddress(`${prefix}${id}/x`)).toBeUndefined();
  });

  it('is not read from a URL in absolute form or from another path', () => {
    for (const url of [
      `http://evil.example${prefix}forms/x`,
      `//evil.example${prefix}forms/x`,
      '*',
      '/token-handler/v1/./targets/forms/x',
      '/token-handler/V1/targets/forms/x',
    ])
      expect(parseTargetAddress(url)).toBeUndefined();
  });
});

describe('the address of a target', () => {
  it.each([
    ['/token-handler/v1/targets/forms/x', true, '/token-handler/v1/targets/'],
    ['/token-handler/targets/forms/x', true, '/token-handler/targets/'],
    ['/x/token-handler/v1/targets/', false, '/token-handler/v1/targets/'],
    ['/x/token-handler/targets/', false, '/token-handler/v1/targets/'],
    ['/token-handler/v1/target', false, '/token-handler/v1/targets/'],
    ['/', false, '/token-handler/v1/targets/'],
    [undefined, false, '/token-handler/v1/targets/'],
  ])('%s: %s', (url, expected, prefixOf) => {
    const request = url === undefined ? {} : { url };
    expect(isTargetRequest(request)).toBe(expected);
    expect(isTargetRequestInAnyForm(request)).toBe(expected);
    expect(parseTargetAddress(url ?? '')?.targetId).toBe(expected ? 'forms' : undefined);
    expect(targetPatternOf(request)).toBe(`${prefixOf}:targetId/*path`);
  });

  it('is recognised in absolute form, so that the target handler rejects it', () => {
    const written = '/token-handler/v1/targets/forms/x';
    for (const origin of ['http://evil.example', 'HTTPS://evil.example:8443', 'a+b-c.1://user@evil.example', 'x://']) {
      expect([origin, isTargetRequestInAnyForm({ url: origin + written })]).toEqual([origin, true]);
      expect(isTargetRequest({ url: origin + written })).toBe(false);
      expect([origin, isTargetRequestInAnyForm({ url: `${origin + written}/` })]).toEqual([origin, true]);
    }
    // None of these addresses is in absolute form: each begins with a slash, a digit or an asterisk, not with a scheme.
    for (const url of [
      `/http://evil.example${written}`,
      `1://evil.example${written}`,
      `*?http://evil.example${written}`,
    ])
      expect([url, isTargetRequestInAnyForm({ url })]).toEqual([url, false]);
  });
});

describe('a name that looks encoded', () => {
  it.each([
    ['names a byte that is not UTF-8', '/a%25ff'],
    ['uses the old %u form of a letter', '/%25u0061'],
    ['is encoded seven times', `/a%${'25'.repeat(7)}41`],
  ])('is forwarded if it %s', (_what, path) => {
    expect(isHarmless(path)).toBe(true);
  });

  it.each([
    ['is encoded eight times', `/a%${'25'.repeat(8)}41`],
    ['is encoded thirty times', `/a%${'25'.repeat(30)}41`],
    ['uses the %u form of a division slash', '/a%25u2215b'],
    ['uses an overlong sequence of two bytes', '/a%25c0%25aeb'],
    ['uses an overlong sequence of three bytes', '/a%25e0%2580%25aeb'],
    ['uses an overlong sequence of four bytes', '/a%25f0%2580%2580%25aeb'],
    ['uses an overlong sequence of five bytes', '/a%25f8%2580%2580%2580%25aeb'],
    ['uses an overlong sequence of six bytes', '/a%25fc%2580%2580%2580%2580%25aeb'],
    ['has middle dots', `/${encoded('··')}/x`],
    ['has Arabic full stops', `/${encoded('۔۔')}/x`],
    ['has ideographic full stops', `/${encoded('。。')}/x`],
    ['has Arabic percent signs', `/${encoded('٪')}2e${encoded('٪')}2e/x`],
    ['has an epsilon as a hexadecimal digit', `/%252${encoded('ε')}%252${encoded('ε')}/x`],
    ['has an estimated sign as a hexadecimal digit', `/%252${encoded('℮')}%252${encoded('℮')}/x`],
    ['has a florin sign as a hexadecimal digit', `/a%252${encoded('ƒ')}b`],
  ])('is refused if it %s', (_what, path) => {
    expect(isHarmless(path)).toBe(false);
  });

  it('is refused if it contains any overlong UTF-8 sequence, and forwarded if an incomplete sequence only resembles one', () => {
    const at = (...bytes: number[]) => `/a${bytes.map((byte) => `%25${byte.toString(16).padStart(2, '0')}`).join('')}b`;
    const last = fc.integer({ min: 0x80, max: 0xbf });
    fc.assert(
      fc.property(fc.array(last, { minLength: 5, maxLength: 5 }), ([a = 0, b = 0, c = 0, d = 0, e = 0]) => {
        expect(isHarmless(at(0xc0, a))).toBe(false);
        expect(isHarmless(at(0xc1, a))).toBe(false);
        expect(isHarmless(at(0xe0, 0x80 + (a & 0x1f), b))).toBe(false);
        expect(isHarmless(at(0xf0, 0x80 + (a & 0x0f), b, c))).toBe(false);
        expect(isHarmless(at(0xf8, 0x80 + (a & 0x07), b, c, d))).toBe(false);
        expect(isHarmless(at(0xfc, 0x80 + (a & 0x03), b, c, d, e))).toBe(false);
      }),
      { numRuns: 300 },
    );
    for (const bytes of [
      [0xe0, 0xa0, 0x41],
      [0xf0, 0x90, 0x41],
      [0xf0, 0x80, 0x80, 0x41],
      [0xf8, 0x88, 0x41],
      [0xf8, 0x80, 0x80, 0x41],
      [0xe0, 0x41, 0x41],
      [0xc2, 0x41],
    ])
      expect([bytes, isHarmless(at(...bytes))]).toEqual([bytes, true]);
  });
});

/**
 * Returns the paths that servers may read instead of `path`: decoded up to three times, with `\` read as a slash, and
 * with or without matrix parameters.
 */
function readings(path: string): string[] {
  const decoded = [path];
  for (let round = 0; round < 3; round += 1) decoded.push(decodeLeniently(decoded.at(-1) ?? ''));
  return decoded.flatMap((text) => {
    const folded = text.normalize('NFKC').replaceAll('\\', '/');
    return [folded, folded.replace(/;[^/]*/g, '')].map((reading) => posix.normalize(reading).replace(/^\/\/+/, '/'));
  });
}

function decodeLeniently(text: string): string {
  // Uses the UTF-8 bytes of each character. If characters were truncated to one byte, U+2025 would become a percent
  // sign.
  const bytes = Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/%([\da-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const overlong = bytes.replace(/\xc0([\x80-\xbf])/g, (_all, low: string) =>
    String.fromCharCode(low.charCodeAt(0) & 0x3f),
  );
  return Buffer.from(overlong, 'latin1').toString('utf8');
}

const encoded = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join('');
const encodedTwice = (text: string) => encoded(text).replaceAll('%', '%25');
const odd =
  '\u00a5\u20a9\u20e5\uffe5\u2024\u2025\u3002\uff0e\uff61\u00b7\uff05\u066a\uff12\uff1f\uff03\uff1b\u037e\u215f\u00bd';
const hostileParts = ['.', '..', '/', 'a', '%25', '2e', '%3f', '%23', ';', '%3b', '%20', ':'].concat(
  [...`${odd}\u0113\u200b\u0301\u00e9`].flatMap((character) => [encoded(character), encodedTwice(character)]),
);

/** Conversions by the Windows code pages 932, 949 and 1250 to 1258, by iconv, and by libraries that drop characters. */
const bestFit: Record<string, string> = {
  ...{ '\u00a5': '\\', '\u20a9': '\\', '\u20e5': '\\', '\u2216': '\\', '\uff3c': '\\', '\u2044': '/', '\u2215': '/' },
  ...{ '\uff0f': '/', '\uff0e': '.', '\u2024': '.', '\u2025': '..', '\u3002': '.', '\uff61': '.', '\u00b7': '.' },
  ...{ '\uff05': '%', '\u066a': '%', '\uff12': '2', '\uff1f': '?', '\uff03': '#', '\uff1b': ';', '\u037e': ';' },
  ...{ '\u0113': 'e', '\u200b': '', '\u0301': '' },
};

/** Conversions that a careless server may apply to a path before it uses the path to find a file. */
const hostileSteps: ((path: string) => string)[] = [
  decodeLeniently,
  decodeLeniently,
  (path) => path.normalize('NFKC'),
  (path) => path.normalize('NFKD').replace(/\p{M}/gu, ''),
  (path) => path.replace(/./gsu, (character) => bestFit[character] ?? character),
  (path) => path.replace(/[?#\0].*$/s, ''),
  (path) => path.replace(/[;?#:\0][^/\\]*/gs, ''),
  (path) => path.replace(/[^/\\]+/g, (segment) => segment.trim()),
];

/** True if a path has a dot segment, so that it could lead to a parent folder. */
function climbs(path: string): boolean {
  return path.split(/[/\\]/).some((segment) => segment === '..' || segment === '.');
}
