// Warns two minutes before the session ends (WCAG 2.2, success criterion 2.2.1). The Escape key extends the session.
import { useEffect, useRef, useState } from 'preact/hooks';
import { consoleSession, extendSession } from './session.ts';
import type { Ending } from './session-state.ts';

interface Props {
  ending: Ending;
  onSignOut(): void;
}

/** The warning disappears when a request of any tab has extended the session. */
export function ExpiryWarning({ ending, onSignOut }: Props) {
  const [isOver, setOver] = useState(false);
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const check = () => {
      setOver(consoleSession()?.expiry !== ending.expiry);
      setSeconds((count) => count + 1);
    };
    const timer = setInterval(check, 1_000);
    return () => clearInterval(timer);
  }, [ending]);
  const stay = async () => {
    await extendSession().catch(() => undefined);
    setOver(consoleSession()?.expiry !== ending.expiry);
  };
  return isOver ? null : (
    <Warning
      ending={ending}
      left={ending.remaining - seconds * 1_000}
      onStay={() => void stay()}
      onSignOut={onSignOut}
    />
  );
}

function Warning({ ending, left, onStay, onSignOut }: Props & { left: number; onStay(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const isLast = consoleSession()?.absoluteExpiry === ending.expiry;
  const minutes = Math.max(1, Math.ceil(left / 60_000));
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
