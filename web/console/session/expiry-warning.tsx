// Warns two minutes before the session ends (WCAG 2.2, success criterion 2.2.1). Escape means stay.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Session } from './session.ts';
import { isEnding, millisecondsLeft } from './session-state.ts';

interface Props {
  session: Session;
  onStay(): void;
  onSignOut(): void;
}

export function ExpiryWarning({ session, onStay, onSignOut }: Props) {
  const [ending, setEnding] = useState(() => isEnding(session));
  useEffect(() => {
    const check = () => setEnding(isEnding(session));
    check();
    const timer = setInterval(check, 1_000);
    return () => clearInterval(timer);
  }, [session]);
  return ending ? <Warning session={session} onStay={onStay} onSignOut={onSignOut} /> : null;
}

function Warning({ session, onStay, onSignOut }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const isLast = Date.parse(session.absoluteExpiry) <= Date.parse(session.expiry);
  const minutes = Math.max(1, Math.ceil(millisecondsLeft(session) / 60_000));
  const stay = (event: Event) => {
    event.preventDefault();
    onStay();
  };
  return (
    <dialog ref={dialog} class="dialog" role="alertdialog" aria-labelledby="expiry-title" onCancel={stay}>
      <h2 id="expiry-title">
        Your session ends in {minutes} {minutes === 1 ? 'minute' : 'minutes'}
      </h2>
      <p>
        {isLast
          ? 'It has reached its longest duration and cannot be extended. What you type is kept in this tab; sign in again afterwards.'
          : 'What you have typed is kept in this tab. To continue without a new sign-in, stay signed in.'}
      </p>
      <div class="actions">
        <button type="button" class="button" onClick={onStay}>
          {isLast ? 'Check again' : 'Stay signed in'}
        </button>
        <button type="button" class="button quiet" onClick={onSignOut}>
          Sign out
        </button>
      </div>
    </dialog>
  );
}
