// Connects a component to the work on a draft: renders the component again after each change.
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import type { DraftWork } from './draft-work.ts';

/** `onMerged` is called after changes from another window were merged. */
export function useDraft(work: DraftWork, onMerged: () => void) {
  const [, render] = useReducer<number, void>((count) => count + 1, 0);
  const merged = useRef(onMerged);
  merged.current = onMerged;
  // `useEffect` would run only after the page is painted, and miss the changes before that.
  useLayoutEffect(() => work.show({ changed: () => render(), merged: () => merged.current() }), [work]);
  const { state, pause, content } = work;
  return { state, pause, content, work };
}

export type OpenDraft = ReturnType<typeof useDraft>;
