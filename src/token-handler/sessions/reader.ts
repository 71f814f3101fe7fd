// Reads the live session of a request from its cookie, without express-session and, if the session was read before and has
// not changed, without a call to the store. It records the time of the request at most once a minute, and starts a refresh
// before the access token expires.
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { EndWatch } from './end-watch.ts';
import type { LiveSession, SessionReader } from './live-session.ts';
import { isUsable, type Refresher } from './refresh.ts';
import { type SessionLimits, touchInterval } from './session.ts';
import type { SessionCookie } from './session-cookie.ts';
import type { FoundSession, Sessions } from './sessions.ts';
import type { TokenStore } from './store.ts';

export interface SessionReaderOptions {
  cookie: SessionCookie;
  sessions: Sessions;
  tokens: Pick<TokenStore, 'touch'>;
  refresher: Refresher;
  endWatch: EndWatch;
  limits: SessionLimits;
  clock: Clock;
}

export function createSessionReader(options: SessionReaderOptions): SessionReader {
  const { cookie, sessions, refresher, endWatch } = options;
  const now = () => options.clock().getTime();
  const mark = createMarker(options);

  function live(found: FoundSession): LiveSession {
    return {
      session: found.session,
      accessToken: async () => (isUsable(found.tokens, now()) ? found.tokens.accessToken : settle(found)),
      onEnd: (listener) => endWatch.onEnd(found, listener),
    };
  }

  async function settle(found: FoundSession): Promise<string> {
    const set = await refresher.settle(found);
    if (!set) throw new Problem('unauthenticated', 'The session has ended.');
    return set.accessToken;
  }

  return {
    async read(request: IncomingMessage) {
      const handle = cookie.handleOf(request.headers.cookie);
      const found = handle === undefined ? undefined : await sessions.find(handle);
      if (!found) return undefined;
      mark(found);
      refresher.begin(found);
      return live(found);
    },
  };
}

/** Records the time of the last request. Each mark changes the stored session, so every replica drops it from its cache. */
function createMarker({ tokens, limits, clock }: SessionReaderOptions): (found: FoundSession) => void {
  const interval = touchInterval(limits);
  // About as many as cached sessions; the store checks its own mark, too.
  const marked = new LRUCache<string, number>({ max: 10_000 });
  return ({ session: { handle }, stored }) => {
    const now = clock().getTime();
    if (now - stored.touched < interval || now - (marked.get(handle) ?? 0) < interval) return;
    marked.set(handle, now);
    // If this fails, the session would end earlier, but the next request marks it again.
    tokens.touch(handle, now, interval).catch(() => marked.delete(handle));
  };
}
