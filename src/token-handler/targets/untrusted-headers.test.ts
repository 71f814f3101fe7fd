import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHeaderMatcher, isHeaderPattern, untrustedHeaders } from './untrusted-headers.ts';

const names = untrustedHeaders.flatMap((group) => group.names);
const isUntrusted = createHeaderMatcher(names);

describe('the headers in which a client could claim something', () => {
  it('are those that docs/target-headers.md lists, with their sources', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/target-headers.md'), 'utf8');
    const rows = page.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'));
    const expected = untrustedHeaders.map(
      (group) => `| ${group.source} | ${group.claim} | ${group.names.map((name) => `\`${name}\``).join(', ')} |`,
    );
    expect(rows).toEqual(expected);
  });

  it('match in any case and with any punctuation, and by their beginning where the list says so', () => {
    const punctuation = fc.constantFrom(..."-_.!#$%&'*+^`|~");
    fc.assert(
      fc.property(fc.constantFrom(...names), punctuation, fc.boolean(), (pattern, mark, isUpper) => {
        const written = pattern.replace('*', 'anything-1').replaceAll('-', mark);
        expect(isUntrusted(isUpper ? written.toUpperCase() : written.toLowerCase())).toBe(true);
        if (!pattern.endsWith('*'))
          expect(isUntrusted(`${written}x`) && !isUntrusted(`x${written}`)).toBe(
            names.some(
              (other) =>
                other.endsWith('*') && `${pattern}x`.toLowerCase().startsWith(other.slice(0, -1).toLowerCase()),
            ),
          );
      }),
    );
  });

  it('are none of those that browsers and frontends need', () => {
    const needed = [
      'Accept',
      'Accept-Encoding',
      'Accept-Language',
      'Cache-Control',
      'Content-Type',
      'Content-Encoding',
    ];
    needed.push(
      'Content-Disposition',
      'DNT',
      'ETag',
      'From',
      'If-Match',
      'If-None-Match',
      'If-Modified-Since',
      'If-Range',
    );
    needed.push(
      'Idempotency-Key',
      'Last-Event-ID',
      'Link',
      'Origin',
      'Pragma',
      'Prefer',
      'Priority',
      'Range',
      'Referer',
    );
    needed.push('Save-Data', 'Sec-CH-UA', 'Sec-Fetch-Site', 'Sec-Fetch-Dest', 'Sec-WebSocket-Key', 'User-Agent', 'Via');
    needed.push('X-Requested-With', 'X-Request-Id', 'X-Correlation-Id', 'X-Form-Code', 'X-Api-Version', 'X-User-Agent');
    needed.push('traceparent', 'tracestate', 'baggage', 'X-Upload-Content-Type', 'X-Amz-Date', 'X-Custom', 'Depth');
    expect(needed.filter(isUntrusted)).toEqual([]);
  });

  it('are patterns that an operator could write as well', () => {
    expect(names.filter((name) => !isHeaderPattern(name))).toEqual([]);
  });
});

describe('the name of a header in TARGET_DROPPED_HEADERS', () => {
  it('is a token, with a star at its end alone', () => {
    for (const name of ['X-Staff-Id', 'x_staff', 'X-Internal-*', 'a', "!#$%&'+.^_`|~9"])
      expect(isHeaderPattern(name)).toBe(true);
    for (const name of ['', '*', 'X-*-Id', '**', 'X Staff', 'X:Staff', 'X-Staff\n', 'é', 'X-Staff,Y'])
      expect([name, isHeaderPattern(name)]).toEqual([name, false]);
  });

  it('matches nothing where there is none', () => {
    expect(createHeaderMatcher([])('')).toBe(false);
    expect(createHeaderMatcher(['X-A'])('X-B')).toBe(false);
  });
});
