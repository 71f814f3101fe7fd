// The session of a request as routes see it: types only.
import type { IncomingMessage } from 'node:http';
import type { Session } from './session.ts';

/** The session of a request, alive when it was read. */
export interface LiveSession {
  readonly session: Session;
  /**
   * An access token that is valid now; refreshed if it is due. Throws Problem `unauthenticated` when the session has
   * ended, `unavailable` when neither the token nor a new one is available at the moment.
   */
  accessToken(): Promise<string>;
  /**
   * Calls `listener` once, when the session has ended: by logout, revocation, expiry or a rejected refresh, on any
   * replica. The returned function stops listening.
   */
  onEnd(listener: () => void): () => void;
}

export interface SessionReader {
  /**
   * The live session of the request's cookie, undefined if it has none. Throws Problem `unavailable` when the session store
   * cannot be asked. A session that was read before and has not changed needs no round trip to the store.
   */
  read(request: IncomingMessage): Promise<LiveSession | undefined>;
}
