// Asks the form service for the problems of a definition, a moment after the last change.
import { useEffect, useState } from 'preact/hooks';
import { type ApiProblem, asProblem } from '../../api/problem.ts';
import { send } from '../../api/send.ts';
import { checkRequest, type Definition } from '../definition.ts';
import type { FoundProblem } from './definition-draft.ts';

export interface Check {
  state: 'checking' | 'checked' | 'failed';
  problems: readonly FoundProblem[];
  truncated: boolean;
  failure?: ApiProblem;
}

/** Milliseconds from the last change to the check. The service allows 60 checks in a minute. */
const pauseMs = 1_000;

const nothing: Check = { state: 'checking', problems: [], truncated: false };

/** Returns the last check. `definition` is undefined if the draft contains invalid JSON. */
export function useCheck(definition: Definition | undefined): Check {
  const [check, setCheck] = useState<Check>(nothing);
  const text = definition && JSON.stringify(definition);
  useEffect(() => {
    if (text === undefined) return;
    let isCurrent = true;
    setCheck((former) => ({ ...former, state: 'checking' }));
    const timer = setTimeout(() => {
      send<Pick<Check, 'problems' | 'truncated'>>(checkRequest(JSON.parse(text) as Definition)).then(
        (found) => isCurrent && setCheck({ ...found, state: 'checked' }),
        (error: unknown) => isCurrent && setCheck({ ...nothing, state: 'failed', failure: asProblem(error) }),
      );
    }, pauseMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  return definition === undefined ? { ...nothing, state: 'checked' } : check;
}
