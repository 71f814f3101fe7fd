// Tracks the session of this browser for the shell of the console.
import { useEffect, useState } from 'preact/hooks';
import { claimKept, forgetAll } from './kept.ts';
import { consoleSession, type Session, tokenHandler } from './session.ts';

export type SessionState =
  | { name: 'loading' }
  | { name: 'unreachable' }
  /** `ended`: a session has ended, so the person's unsent input may have been kept. */
  | { name: 'signed-out'; ended: boolean }
  | { name: 'signed-in'; session: Session };

/** A session that ends soon. */
export interface Ending {
  /** The time of the end in milliseconds, by `performance.now()`. */
  endsAt: number;
  expiry: string;
}

export interface FollowedSession {
  state: SessionState;
  ending: Ending | undefined;
  /** Reads the session again. */
  reload(): void;
}

export function useFollowedSession(): FollowedSession {
  const [state, setState] = useState<SessionState>({ name: 'loading' });
  const [ending, setEnding] = useState<Ending>();
  const reload = () =>
    void tokenHandler()
      .read()
      .then(
        () => setState(currentState),
        () => setState((former) => (former.name === 'loading' ? { name: 'unreachable' } : former)),
      );
  useEffect(() => {
    const stop = tokenHandler().on((event) => {
      if (event.type === 'unauthorized') return;
      if (event.type === 'expiring') {
        setEnding({ endsAt: performance.now() + event.remaining, expiry: event.session.expiry });
        return;
      }
      setEnding(undefined);
      setState((former) => {
        // Kept values are deleted only if a person was signed in. A page whose first read finds no session also gets
        // `signed-out`, but in this case the session may have expired.
        if (event.type === 'signed-out' && former.name === 'signed-in') forgetAll();
        return event.type === 'expired' ? { name: 'signed-out', ended: true } : currentState();
      });
    });
    reload();
    return stop;
  }, []);
  return { state, ending, reload };
}

function currentState(): SessionState {
  const session = consoleSession();
  if (!session) return { name: 'signed-out', ended: false };
  claimKept(`${session.tenantId} ${session.email ?? session.name}`);
  return { name: 'signed-in', session };
}
