// Loads the data that a page shows. Shows the progress while the data loads, and the problem if the loading fails.
import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { type ApiProblem, asProblem } from '../api/problem.ts';
import { ProblemBox } from './problem-box.tsx';
import { restoreFocus } from './status.tsx';

export interface Load<T> {
  /**
   * The loaded value; undefined until the first load has succeeded. A reload keeps the former value until the new one
   * has arrived.
   */
  value: T | undefined;
  problem: ApiProblem | undefined;
  isLoading: boolean;
  reload(): void;
  /**
   * Replaces the value without a request, for example with the response to a change. Does nothing if the key has
   * changed since the last rendering.
   */
  set(value: T): void;
}

/**
 * Loads a value, and loads it again when `key` or `version` changes. The value of another version is shown until the
 * new one has arrived. Late responses are dropped.
 */
export function useLoad<T>(key: string, load: () => Promise<T>, version = 0): Load<T> {
  const [state, setState] = useState<{ key: string; value?: T; problem?: ApiProblem }>({ key });
  const [round, setRound] = useState(0);
  const [isLoading, setLoading] = useState(true);
  // `load` is a new function at each rendering, so the effect depends on what identifies the loaded value.
  useEffect(() => {
    let isCurrent = true;
    setLoading(true);
    const settle = (loaded: { value: T } | { problem: ApiProblem }) => {
      if (!isCurrent) return;
      setState({ key, ...loaded });
      setLoading(false);
    };
    load().then(
      (value) => settle({ value }),
      (error: unknown) => settle({ problem: asProblem(error) }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key, version, round]);
  // The button that was pressed may be missing in the new state, for example if it released a listed item.
  useEffect(restoreFocus, [state]);
  const isOfKey = state.key === key;
  return {
    value: isOfKey ? state.value : undefined,
    problem: isOfKey ? state.problem : undefined,
    isLoading,
    reload: useCallback(() => {
      // The effect also sets this state, but only after the next paint. Until then, a person could use the old value.
      setLoading(true);
      setRound((number) => number + 1);
    }, []),
    set: useCallback((value: T) => setState((state) => (state.key === key ? { key, value } : state)), [key]),
  };
}

export function Loaded<T>({ load, children }: { load: Load<T>; children: (value: T) => ComponentChildren }) {
  if (load.problem) return <ProblemBox problem={load.problem} onRetry={() => load.reload()} />;
  if (load.value === undefined) return <p role="status">Loading …</p>;
  return <>{children(load.value)}</>;
}
