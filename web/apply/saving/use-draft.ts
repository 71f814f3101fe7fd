// Connects a component to the work on a draft: renders the component again after each change.
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import type { DraftView, DraftWork } from './draft-work.ts';

export function useDraft(work: DraftWork, news: Omit<DraftView, 'changed'>) {
  const [, render] = useReducer<number, void>((count) => count + 1, 0);
  const latest = useRef(news);
  latest.current = news;
  const view: DraftView = {
    changed: () => render(),
    merged: () => latest.current.merged(),
    sent: (name) => latest.current.sent(name),
  };
  // `useEffect` would run only after the page is painted, and miss the changes before that.
  useLayoutEffect(() => work.show(view), [work]);
  const { state, pause, content } = work;
  return { state, pause, content, work };
}

export type OpenDraft = ReturnType<typeof useDraft>;
