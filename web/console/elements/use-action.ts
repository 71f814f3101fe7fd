// Runs the action of a button, but not twice at the same time, and remembers the last failure.
import { useState } from 'preact/hooks';
import { type ApiProblem, asProblem } from '../api/problem.ts';

export interface Action {
  isBusy: boolean;
  problem: ApiProblem | undefined;
  /** Runs `work` unless an earlier call is still running. Resolves to true if `work` succeeded. */
  run(work: () => Promise<unknown>): Promise<boolean>;
  clear(): void;
}

export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ApiProblem>();
  return {
    isBusy,
    problem,
    clear: () => setProblem(undefined),
    run: async (work) => {
      if (isBusy) return false;
      setBusy(true);
      setProblem(undefined);
      try {
        await work();
        return true;
      } catch (error) {
        setProblem(asProblem(error));
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}
