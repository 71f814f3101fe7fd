// What the reader of sessions hands out: types only.
import type { IncomingMessage } from 'node:http';
import type { Session } from './session.ts';

/** The session of a request, alive when it was read. */
export interface LiveSession {
  readonly session: Session;
  /**
   * An access token that is valid now, refreshed where it is due. Throws Problem `unauthenticated` when the session has
   * ended, `unavailable` when neither the token nor a new one can be had at the moment.
   */
  accessToken(): string | Promise<string>;
  /**
   * Calls `listener` once, when the session has ended: by logout, revocation, expiry or a refused refresh, on any
   * replica. The function that it answers stops listening.
   */
  onEnd(listener: () => void): () => void;
}

export interface SessionReader {
  /**
   * The live session of the request's cookie, undefined when it has none. Throws Problem `unavailable` when the session
   * store cannot say. A steady request makes no round trip to the store, and is answered at once.
   */
  read(request: IncomingMessage): LiveSession | undefined | Promise<LiveSession | undefined>;
}
