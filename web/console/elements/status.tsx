// Announces a completed action as a text on the page. Screen readers read the text out without a change of focus.
import { createContext } from 'preact';
import { useContext, useEffect } from 'preact/hooks';

export const AnnounceContext = createContext<(text: string) => void>(() => undefined);

/** Returns a function that shows a text at the top of the page until the next text. */
export function useAnnounce(): (text: string) => void {
  return useContext(AnnounceContext);
}

/** `count` is the number of the announcement: a repeated text becomes a new element, so that it is read again. */
export function Announcement({ text, count }: { text: string; count: number }) {
  useEffect(restoreFocus, [count]);
  return (
    <div role="status" tabIndex={-1} class={text === '' ? 'hidden' : 'done'}>
      <span key={count}>{text}</span>
    </div>
  );
}

/** Moves the focus to the announcement if the focused element, such as the pressed button, has disappeared. */
export function restoreFocus(): void {
  if (document.activeElement !== document.body) return;
  document.querySelector<HTMLElement>('.done')?.focus({ preventScroll: true });
}
