import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isInert } from './response-headers.ts';

describe('a response is inert', () => {
  it('if every browser shows its type without running scripts, in any letter case and with any parameters', () => {
    const types = [
      'text/plain',
      'application/json',
      'application/hal+json',
      'application/problem+json',
      'application/pdf',
    ];
    types.push('IMAGE/PNG', 'video/mp4', 'audio/mpeg', 'font/woff2', ' text/csv ', 'text/event-stream');
    types.push('text/plain;charset=utf-8', 'text/plain ; a="b;c"', 'application/octet-stream;', 'image/png, image/gif');
    types.push('application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'application/vnd.ms-excel');
    for (const type of types) expect([type, isInert(type)]).toEqual([type, true]);
    expect(isInert(['image/png', 'image/png'])).toBe(true);
  });

  it('never if it has no type, or if any of its types is not inert', () => {
    const types = [
      '',
      ' ',
      '*/*',
      'text',
      'text/',
      '/html',
      'text/html',
      'text/html xxx',
      'text/plain xxx',
      'text/xsl',
      'text/xml',
    ];
    types.push(
      'image/svg+xml',
      'image/x+xml',
      'video/x+xml',
      'application/x+json+xml',
      'multipart/x-mixed-replace',
      'message/rfc822',
    );
    types.push(
      'image/png, text/html',
      'image/png,',
      ',image/png',
      'text/plain; a=", text/html"',
      'text/plain\n',
      'text/plain\u000b',
    );
    types.push(
      'application/x-shockwave-flash',
      'text/javascript',
      'application/pdf(x)',
      'text/plain,*/*',
      '\u00a0text/plain',
    );
    for (const type of types) expect([type, isInert(type)]).toEqual([type, false]);
    for (const types of [undefined, ['image/png', 'text/html'], ['text/html', 'image/png']])
      expect(isInert(types)).toBe(false);
  });

  it('never in the examples of the Fetch standard, all of which are HTML', () => {
    const examples = ['text/plain;charset=gbk, text/html', 'text/html;charset=gbk;a=b, text/html;x=y'];
    examples.push(
      'text/html;charset=gbk, x/x, text/html;x=y',
      'text/html, cannot-parse',
      'text/html, */*',
      'text/html, ',
    );
    for (const example of examples) {
      expect(extracted(example)).toBe('text/html');
      expect(isInert(example)).toBe(false);
      expect(isInert(example.split(', '))).toBe(false);
    }
  });

  it('only if its type is also inert for the Fetch standard and Chromium', () => {
    const parts = [
      'text/html',
      'text/plain',
      'image/png',
      'image/svg+xml',
      'text/xsl',
      '*/*',
      ',',
      ', ',
      ';',
      '"',
      '\\',
      ' ',
      '\t',
      'a=b',
      'x',
      '/',
      '(',
    ];
    let inert = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 6 }), (items) => {
        const value = items.join('');
        if (!isInert(value)) return;
        inert += 1;
        expect(['text/plain', 'image/png']).toContain(extracted(value));
        for (const type of seenByChromium(value)) expect(['text/plain', 'image/png']).toContain(type);
      }),
      { numRuns: 50_000 },
    );
    expect(inert).toBeGreaterThan(500);
  });
});

/**
 * Extracts a MIME type as the Fetch standard does, and returns its essence (type and subtype). Commas in quotes do not
 * separate values.
 */
function extracted(value: string): string | undefined {
  const values = value.match(/(?:[^",]|"(?:[^"\\]|\\.)*"?)+/gs) ?? [];
  const essences = values.map((one) =>
    /^[\t\n\r ]*([!#$%&'*+.^_`|~\w-]+)\/([!#$%&'*+.^_`|~\w-]+)[\t\n\r ]*(?:;|$)/.exec(one),
  );
  return essences
    .map((match) => match && `${match[1]}/${match[2]}`.toLowerCase())
    .findLast((essence) => essence != null && essence !== '*/*')
    ?.toString();
}

/** Returns the types that Chromium may choose. Chromium cuts each value off at white space, `;` or `(`. */
function seenByChromium(value: string): string[] {
  return value
    .split(',')
    .map((one) => one.trim().split(/[\t ;(]/, 1)[0] ?? '')
    .filter((type) => /^[^/]+\/[^/]+$/.test(type) && type !== '*/*');
}
