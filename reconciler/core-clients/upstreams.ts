// Checks whether the directory knows the upstreams of targets. Does not call the upstreams, and does not check whether
// the token handler allows their addresses.
import type { Directory } from '../../src/platform/directory.ts';
import { PlatformError } from '../../src/platform/platform-error.ts';

/**
 * - `resolved`: the directory has an entry with a usable URL
 * - `absent`: the directory has no such entry
 * - `unknown`: the directory cannot be read
 */
export type UpstreamState = 'resolved' | 'absent' | 'unknown';

/** Returns the state of each upstream, keyed by its URN. */
export async function checkUpstreams(
  urns: Iterable<string>,
  directory: Pick<Directory, 'resolve'>,
): Promise<ReadonlyMap<string, UpstreamState>> {
  const states = new Map<string, UpstreamState>();
  // The URNs are checked one after another, because only the first URN of each namespace causes a request.
  for (const urn of new Set(urns)) states.set(urn, await check(urn, directory));
  return states;
}

async function check(urn: string, directory: Pick<Directory, 'resolve'>): Promise<UpstreamState> {
  try {
    await directory.resolve(urn);
    return 'resolved';
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    const isAbsent = error.service === 'directory' && (error.reason === 'absent' || error.reason === 'unusable');
    return isAbsent ? 'absent' : 'unknown';
  }
}
