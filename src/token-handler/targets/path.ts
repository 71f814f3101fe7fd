// Recognises the address of a target, and turns it into the path at the upstream: pure. It never normalises a path, but
// forwards it byte for byte or rejects it. It rejects every path that a server, framework or file system could read as a
// step out of the base path, however often that step is encoded, and every path that HTTP does not allow (RFC 9112 section
// 3.2.1).

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';

const versionedPath = '/token-handler/v1/targets/';
const unversionedPath = '/token-handler/targets/';
const pattern = ':targetId/*path';
/** The route's pattern. */
export const targetPattern = versionedPath + pattern;

/** Whether a request is for a target, by its address as written. */
export function isTargetRequest({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
  return url.startsWith(versionedPath) || url.startsWith(unversionedPath);
}

/** Also true for an address in absolute form (RFC 9112 section 3.2.2), which the handler rejects. */
export function isForTargets({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
  return isTargetRequest({ url: url.startsWith('/') ? url : url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '') });
}

/** The part of an address before the target's id. */
export function pathPrefixOf(url: string): string {
  return url.startsWith(unversionedPath) ? unversionedPath : versionedPath;
}

/** The pattern of a request's route, for logs and metrics. */
export function targetPatternOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  return url.startsWith(unversionedPath) ? unversionedPath + pattern : targetPattern;
}

export interface TargetAddress {
  /** Decoded. */
  targetId: string;
  /** The path after the id, as written; may be empty. */
  path: string;
  /** The query as written, with its question mark; may be empty. */
  query: string;
}

/** `prefix`: the part before the id. Undefined if the address does not name a target. */
export function parseTargetAddress(url: string, prefix: string): TargetAddress | undefined {
  // The absolute form (RFC 9112 section 3.2.2) is for proxies: it names a host of its own.
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
 * The path and query to request; undefined if the path must not be forwarded. `basePath`: of the upstream's URL, without
 * trailing slash.
 */
export function upstreamPath(basePath: string, { path, query }: Omit<TargetAddress, 'targetId'>): string | undefined {
  if (!isHarmless(path)) return undefined;
  // `//host/x` in a request line reads as another host to servers that parse it as a reference (RFC 3986 section 4.2).
  if (basePath === '' && path.startsWith('//')) return undefined;
  return `${basePath}${path}` === '' ? `/${query}` : `${basePath}${path}${query}`;
}

/** Unreserved characters, sub-delimiters without the semicolon, colon and at sign; no segment begins with a dot. */
const plainPath = /^(?:\/(?!\.)[\w.~!$&'()*+,=:@-]*)*$/;

/** Whether no reader of a path (empty, or beginning with a slash) could take it for another one. */
export function isHarmless(path: string): boolean {
  return plainPath.test(path) || isHarmlessEncoded(path);
}

/** Levels of nested percent-encoding that are decoded. Deeper paths are rejected. */
const deepest = 8;

function isHarmlessEncoded(path: string): boolean {
  // As written: printable ASCII, no back slash, no fragment, and no broken or home-made (`%u002f`) encoding.
  if (/[^\x21-\x7e]|[\\#]|%(?![\da-f]{2})/i.test(path) || hasDotSegment(path)) return false;
  const slashes = count(path, '/');
  let text = path;
  for (let level = 0; level <= deepest; level += 1) {
    const decoded = decodeOnce(text);
    if (decoded === text) return true;
    // One byte for each character, so that what hides in them shows.
    if (count(decoded, '/') > slashes || decoded.includes('\\')) return false;
    if (/[^\x20-\x7e\x80-\uffff]/.test(decoded) || overlong.test(decoded) || hasDotSegment(decoded)) return false;
    const bytes = bytesOf(decoded);
    // Bytes that were sent must be UTF-8; further down, a percent sign may stand for itself.
    if (level === 0 && !isUtf8(bytes)) return false;
    const folded = foldHarmless(bytes, slashes);
    if (folded === undefined) return false;
    text = folded;
  }
  return false;
}

/** Longer sequences than UTF-8 allows (RFC 3629 section 3) for what is ASCII to a lenient decoder. */
const overlong =
  /[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}|\xf8[\x80-\x87][\x80-\xbf]{3}|\xfc[\x80-\x83]/;

/** Slashes and back slashes of other scripts, which the best fit of Windows turns into those of ASCII. */
const lookalikes = /[\u20e5\u2044\u2215\u2216\u29f5\u29f8\u29f9\uff0f\uff3c\ufe68]/;

/**
 * ASCII separators, and characters that converters turn into one. Best fit makes a back slash of the yen sign (code page
 * 932) and of the won sign (949); both are fine in names, but not beside dots. The fraction slash is what compatibility
 * decomposition leaves of U+215F.
 */
const foldedSeparators = /[/\\\u00a5\u20a9\u2044]/;

/** Other conversions to ASCII, of best fit and of iconv's `//TRANSLIT`, that Unicode's decompositions do not know. */
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

/** Dropped by servers that compare names by their letters: combining marks, and characters without a glyph. */
const dropped = /[\p{M}\p{Default_Ignorable_Code_Point}]/gu;

/** One byte for each character, but for those beyond a byte, which `%uXXXX` stood for. */
function bytesOf(decoded: string): Buffer {
  const bytes = decoded.replace(/[\u0100-\u{10ffff}]/gu, (character) => Buffer.from(character).toString('latin1'));
  return Buffer.from(bytes, 'latin1');
}

/**
 * What converters to ASCII make of text in UTF-8, again one byte for each character. Undefined where it has more
 * separators than before, or a dot segment.
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
 * One or two dots, perhaps between white space that file systems drop, and perhaps before what some readers cut off:
 * matrix parameters (`..;x=1`), a query or fragment whose mark was encoded, the stream of a file of Windows (`..:x`).
 */
function hasDotSegment(path: string, separators: string | RegExp = '/'): boolean {
  return path.split(separators).some((segment) => /^\s*\.{1,2}\s*(?:[;?#:]|$)/.test(segment));
}

/** Percent-encoded bytes, and the `%uXXXX` of older servers, once; what is no encoding stays. */
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
