// Recognises requests for targets by their address as written: `/token-handler/v1/targets/<id>/…`, or without `v1` for
// frontends whose proxy does not rewrite. Other spellings of the prefix are not recognised.
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
