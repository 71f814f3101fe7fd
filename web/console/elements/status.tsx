// Announces a completed action as a text on the page. Screen readers read the text out without a change of focus.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

export const AnnounceContext = createContext<(text: string) => void>(() => undefined);

/** Returns a function that shows a text at the top of the page until the next text. */
export function useAnnounce(): (text: string) => void {
  return useContext(AnnounceContext);
}

export function Announcement({ text }: { text: string }) {
  return (
    <div role="status" class={text === '' ? 'hidden' : 'done'}>
      {text}
    </div>
  );
}
