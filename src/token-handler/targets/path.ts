// Parses the address of a target, and builds the path at the upstream. A path is forwarded byte for byte or rejected,
// never normalised. Rejects every path that a server, framework or file system could read as leading out of the base
// path, even if it is encoded several times. Also rejects every path that HTTP does not allow (RFC 9112 section 3.2.1).
// Pure functions only.

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';

const versionedPath = '/token-handler/v1/targets/';
const unversionedPath = '/token-handler/targets/';
const pattern = ':targetId/*path';
/** The pattern of the versioned route for targets. */
export const targetPattern = versionedPath + pattern;

/** True if the address of a request, as written, begins like the address of a target. */
export function isTargetRequest({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
  return url.startsWith(versionedPath) || url.startsWith(unversionedPath);
}

/** Like `isTargetRequest`, but also true for an address in absolute form (RFC 9112), which the handler rejects. */
export function isTargetRequestInAnyForm({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
  return isTargetRequest({ url: url.startsWith('/') ? url : url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '') });
}

/** Returns the route pattern of a request for a target, for logs and metrics. */
export function targetPatternOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  return url.startsWith(unversionedPath) ? unversionedPath + pattern : targetPattern;
}

export interface TargetAddress {
  /** The target's id, percent-decoded. */
  targetId: string;
  /** The path after the id, as written. May be empty. */
  path: string;
  /** The query as written, with its question mark. May be empty. */
  query: string;
}

/** Returns undefined if `url` does not name a target. */
export function parseTargetAddress(url: string): TargetAddress | undefined {
  const prefix = url.startsWith(unversionedPath) ? unversionedPath : versionedPath;
  // Rejects a URL in absolute form (RFC 9112 section 3.2.2), because its host may differ from the Host header.
  if (!url.startsWith(prefix)) return undefined;
  const mark = url.indexOf('?', prefix.length);
  const end = mark < 0 ? url.length : mark;
  const slash = url.indexOf('/', prefix.length);
  const idEnd = slash < 0 || slash > end ? end : slash;
  const written = url.slice(prefix.length, idEnd);
  if (!isHarmless(`/${written}`)) return undefined;
  const targetId = written.includes('%') ? decodeURIComponent(written) : written;
  return { targetId, path: url.slice(idEnd, end), query: url.slice(end) };
}

/**
 * Returns the path and query at the upstream, or undefined if the path must not be forwarded. `basePath` is the path of
 * the upstream's URL without a trailing slash.
 */
export function upstreamPath(basePath: string, { path, query }: Omit<TargetAddress, 'targetId'>): string | undefined {
  if (!isHarmless(path)) return undefined;
  // Servers that parse the request line as a URL reference would read `//host/x` as another host (RFC 3986 section
  // 4.2).
  if (basePath === '' && path.startsWith('//')) return undefined;
  return `${basePath}${path}` === '' ? `/${query}` : `${basePath}${path}${query}`;
}

/** Matches paths of only those characters that RFC 3986 allows, except `;` and `%`. No segment begins with a dot. */
const plainPath = /^(?:\/(?!\.)[\w.~!$&'()*+,=:@-]*)*$/;

/** True if no server could read `path` as a different path. `path` is empty or begins with a slash. */
export function isHarmless(path: string): boolean {
  return plainPath.test(path) || isHarmlessEncoded(path);
}

/** Number of levels of nested percent-encoding that are checked. A path with more levels is rejected. */
const deepest = 8;

function isHarmlessEncoded(path: string): boolean {
  // As written, the path must be printable ASCII, without backslashes, a fragment, or invalid encoding such as
  // `%u002f`.
  if (/[^\x21-\x7e]|[\\#]|%(?![\da-f]{2})/i.test(path) || hasDotSegment(path)) return false;
  const slashes = count(path, '/');
  let text = path;
  for (let level = 0; level <= deepest; level += 1) {
    const decoded = decodeOnce(text);
    if (decoded === text) return true;
    // `decoded` has one character for each byte, so that bytes of invalid UTF-8 are checked too.
    if (count(decoded, '/') > slashes || decoded.includes('\\')) return false;
    if (/[^\x20-\x7e\x80-\uffff]/.test(decoded) || overlong.test(decoded) || hasDotSegment(decoded)) return false;
    const bytes = bytesOf(decoded);
    // Only the first level must be valid UTF-8, because at deeper levels a percent sign may be ordinary text.
    if (level === 0 && !isUtf8(bytes)) return false;
    const folded = foldHarmless(bytes, slashes);
    if (folded === undefined) return false;
    text = folded;
  }
  return false;
}

/** Overlong UTF-8 sequences (RFC 3629 section 3), which a lenient decoder may turn into ASCII. */
const overlong =
  /[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}|\xf8[\x80-\x87][\x80-\xbf]{3}|\xfc[\x80-\x83]/;

/** Characters that the best-fit conversion of Windows turns into slashes or backslashes. */
const lookalikes = /[\u20e5\u2044\u2215\u2216\u29f5\u29f8\u29f9\uff0f\uff3c\ufe68]/;

/**
 * ASCII separators, and characters that converters turn into a separator. Best-fit conversion turns the yen sign (code
 * page 932) and the won sign (949) into a backslash. Both signs may occur in names, but not next to dots. The fraction
 * slash results from the compatibility decomposition of U+215F.
 */
const foldedSeparators = /[/\\\u00a5\u20a9\u2044]/;

/** Further characters that best-fit conversion or iconv's `//TRANSLIT` turns into ASCII. NFKD does not convert them. */
const asciiLookalikes: Readonly<Record<string, string>> = {
  '\u00b7': '.',
  '\u06d4': '.',
  '\u3002': '.',
  '\u066a': '%',
  '\u0192': 'f',
  '\u03b5': 'e',
  '\u212e': 'e',
};
const asciiLookalike = new RegExp(`[${Object.keys(asciiLookalikes).join('')}]`, 'g');

/** Combining marks and invisible characters, which a server drops if it compares names only by their letters. */
const dropped = /[\p{M}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Returns the bytes of `decoded`: one byte for each character up to U+00FF, and the UTF-8 bytes of every other
 * character, which comes from `%uXXXX`.
 */
function bytesOf(decoded: string): Buffer {
  const bytes = decoded.replace(/[\u0100-\u{10ffff}]/gu, (character) => Buffer.from(character).toString('latin1'));
  return Buffer.from(bytes, 'latin1');
}

/**
 * Converts UTF-8 text to ASCII, as lenient converters do. Returns one character for each byte. Returns undefined if the
 * result has a dot segment, or more than `slashes` separators.
 */
function foldHarmless(bytes: Buffer, slashes: number): string | undefined {
  const text = bytes.toString('utf8');
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  if (/\p{Cc}/u.test(text) || lookalikes.test(text)) return undefined;
  const folded = text
    .normalize('NFKD')
    .replace(dropped, '')
    .replace(asciiLookalike, (character) => asciiLookalikes[character] ?? '');
  if (count(folded, '/') > slashes || folded.includes('\\')) return undefined;
  if (hasDotSegment(folded, foldedSeparators)) return undefined;
  return Buffer.from(folded).toString('latin1');
}

/**
 * True if a segment is one or two dots. White space around the dots is ignored, because file systems drop it. Text
 * after the dots is ignored if some servers cut it off: matrix parameters (`..;x=1`), an encoded query or fragment, or
 * a stream name on Windows (`..:x`).
 */
function hasDotSegment(path: string, separators: string | RegExp = '/'): boolean {
  return path.split(separators).some((segment) => /^\s*\.{1,2}\s*(?:[;?#:]|$)/.test(segment));
}

/**
 * Decodes percent-encoded bytes once, and also `%uXXXX`, which older servers decode. Leaves all other text unchanged.
 */
function decodeOnce(text: string): string {
  return text.replace(/%(?:([\da-f]{2})|u([\da-f]{4}))/gi, (_all, byte?: string, unit?: string) =>
    byte === undefined
      ? String.fromCharCode(Number.parseInt(unit ?? '', 16)).normalize('NFKC')
      : String.fromCharCode(Number.parseInt(byte, 16)),
  );
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}
