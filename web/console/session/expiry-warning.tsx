// Warns two minutes before the session ends (WCAG 2.2, success criterion 2.2.1). The Escape key extends the session.
// Each answer closes the dialog, so that a person can save their work before the end.
import { useEffect, useReducer, useRef, useState } from 'preact/hooks';
import { keepsEverything } from './kept.ts';
import { consoleSession, extendSession } from './session.ts';
import type { Ending } from './session-state.ts';

interface Props {
  ending: Ending;
  onSignOut(): void;
}

/**
 * Milliseconds by which the expiry moves at least if the session was extended. The end that the identity provider sets
 * may move by the duration of a request, because refresh tokens state their lifetime in seconds.
 */
const leastExtension = 10_000;

const isLater = (expiry: string, than: string) => Date.parse(expiry) - Date.parse(than) >= leastExtension;

/** The warning disappears when a request of any tab has extended the session. */
export function ExpiryWarning({ ending, onSignOut }: Props) {
  const [answered, setAnswered] = useState<{ expiry: string; isExtending: boolean }>();
  const [, render] = useReducer<number, void>((count) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => render(), 1_000);
    return () => clearInterval(timer);
  }, []);
  const stay = async () => {
    setAnswered({ expiry: ending.expiry, isExtending: true });
    await extendSession().catch(() => undefined);
    setAnswered({ expiry: ending.expiry, isExtending: false });
  };
  const session = consoleSession();
  if (!session || isLater(session.expiry, ending.expiry)) return null;
  const minutes = Math.max(1, Math.ceil((ending.endsAt - performance.now()) / 60_000));
  const left = `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`;
  if (!answered || isLater(ending.expiry, answered.expiry))
    return <Warning left={left} onStay={() => void stay()} onSignOut={onSignOut} />;
  return answered.isExtending ? null : <NotExtended left={left} />;
}

interface WarningProps {
  /** The time until the session ends. */
  left: string;
  onStay(): void;
  onSignOut(): void;
}

function Warning({ left, onStay, onSignOut }: WarningProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Closing the dialog returns the focus to the field in which the person was typing.
    return () => shown?.close();
  }, []);
  const stay = (event: Event) => {
    event.preventDefault();
    onStay();
  };
  return (
    <dialog ref={dialog} class="dialog" role="alertdialog" aria-labelledby="expiry-title" onCancel={stay}>
      <h2 id="expiry-title">Your session ends in {left}</h2>
      <p>{keptText()} To continue without a new sign-in, stay signed in.</p>
      <div class="actions">
        <button type="button" class="button" onClick={onStay}>
          Stay signed in
        </button>
        <button type="button" class="button quiet" onClick={onSignOut}>
          Sign out
        </button>
      </div>
    </dialog>
  );
}

function NotExtended({ left }: { left: string }) {
  return (
    <p class="note ending" role="alert">
      The session could not be extended and ends in {left}. Save your work now. {keptText()} Sign in again afterwards.
    </p>
  );
}

function keptText(): string {
  return keepsEverything()
    ? 'What you have typed is kept in this tab.'
    : 'What you have typed is too large to be kept in this tab: it will be lost when the session ends.';
}
