// Follows the session of this browser: reads it, polls it, and notices sign-in and sign-out in other tabs.
import { useEffect, useState } from 'preact/hooks';
import { claimKept, forgetAll } from './kept.ts';
import { extendSession, onSession, readSession, type Session, serverNow } from './session.ts';

export type SessionState =
  | { name: 'loading' }
  | { name: 'unreachable' }
  /** `ended`: there was a session, so something may be kept. */
  | { name: 'signed-out'; ended: boolean }
  | { name: 'signed-in'; session: Session };

export interface FollowedSession {
  state: SessionState;
  /** Asks again. */
  reload(): void;
  /** Extends the session by a request. */
  extend(): void;
}

const pollMs = 60_000;
const warnMs = 120_000;

export function useFollowedSession(): FollowedSession {
  const [state, setState] = useState<SessionState>({ name: 'loading' });
  useEffect(() => {
    const end = (ended: boolean) => setState({ name: 'signed-out', ended });
    const stops = [
      onSession('ended', () => end(true)),
      onSession('signed-out', () => {
        forgetAll();
        end(false);
      }),
      onSession('signed-in', () => void load(setState)),
    ];
    void load(setState);
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  useEffect(() => {
    if (state.name !== 'signed-in') return;
    const timer = setTimeout(() => void load(setState, state), nextPoll(state.session));
    return () => clearTimeout(timer);
  }, [state]);
  return {
    state,
    reload: () => void load(setState),
    extend: () => void load(setState, state, extendSession),
  };
}

type Set = (state: SessionState) => void;

async function load(set: Set, former: SessionState = { name: 'loading' }, read = readSession): Promise<void> {
  try {
    const session = await read();
    if (!session) return set({ name: 'signed-out', ended: former.name === 'signed-in' });
    claimKept(`${session.tenantId} ${session.email ?? session.name}`);
    set({ name: 'signed-in', session });
  } catch {
    // A signed-in page goes on: the next request tells whether the session has ended.
    set(former.name === 'signed-in' ? { ...former } : { name: 'unreachable' });
  }
}

export const millisecondsLeft = ({ expiry }: Session): number => Date.parse(expiry) - serverNow();

export const isEnding = (session: Session): boolean => millisecondsLeft(session) <= warnMs;

/** Milliseconds until the session should be read again. */
function nextPoll(session: Session): number {
  const left = millisecondsLeft(session);
  if (left <= 0) return 5_000;
  return Math.max(1_000, Math.min(pollMs, left > warnMs ? left - warnMs + 500 : left + 500));
}
