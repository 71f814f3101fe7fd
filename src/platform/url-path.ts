// Builds URL paths and queries. Each value becomes exactly one path segment, regardless of its characters.
import { PlatformError } from './platform-error.ts';

export type Query = Record<string, string | number | boolean | undefined>;

/**
 * Returns `/a%20b/c` for `('a b', 'c')`. Throws PlatformError `rejected` for an empty segment, a segment that is not
 * well-formed Unicode, and a dot segment, because URL parsers remove dot segments (RFC 3986 section 5.2.4).
 */
export function pathOf(service: string, ...segments: string[]): string {
  let path = '';
  for (const segment of segments) {
    if (segment === '' || segment === '.' || segment === '..' || !segment.isWellFormed())
      throw new PlatformError(service, 'rejected', { upstreamStatus: 400, reason: 'unusable path segment' });
    path += `/${encodeURIComponent(segment)}`;
  }
  return path;
}

/** Returns `?a=1&b=x%20y`, or an empty string if there are no members. Undefined members are omitted. */
export function queryOf(query: Query | undefined): string {
  let text = '';
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== undefined) text += `${text === '' ? '?' : '&'}${name}=${encodeURIComponent(value)}`;
  return text;
}
