// Loads each register once. A register that could not be loaded is loaded again on demand.
import { useEffect, useState } from 'preact/hooks';
import type { Api } from './api.ts';
import type { Field } from './model/fields.ts';
import { type Choice, choicesFrom } from './model/registers.ts';

export interface Registers {
  /** Loads the entries of a register. Rejects if they cannot be loaded. */
  load(name: string): Promise<unknown>;
}

export function createRegisters(api: Pick<Api, 'entries'>): Registers {
  const loaded = new Map<string, Promise<unknown>>();
  return {
    load(name) {
      const known = loaded.get(name) ?? api.entries(name);
      loaded.set(name, known);
      known.catch(() => loaded.delete(name));
      return known;
    },
  };
}

/** Loads the choices of a field. `choices` is undefined while the choices are loading, and if they cannot be loaded. */
export function useChoices({ register, choices }: Field, registers: Registers) {
  const [loaded, setLoaded] = useState<readonly Choice[] | 'failed' | undefined>();
  const [attempt, setAttempt] = useState(0);
  const [isLoading, setLoading] = useState(true);
  const key = register && JSON.stringify([register, attempt]);
  useEffect(() => {
    if (!register) return undefined;
    let isCurrent = true;
    const settle = (result: readonly Choice[] | 'failed') => {
      if (!isCurrent) return;
      setLoaded(result);
      setLoading(false);
    };
    setLoading(true);
    registers.load(register.name).then(
      (entries) => settle(choicesFrom(entries, register)),
      () => settle('failed'),
    );
    return () => {
      isCurrent = false;
    };
  }, [key]);
  if (!register) return { choices, isFailed: false, isLoading: false, retry: () => undefined };
  return {
    choices: loaded === 'failed' ? undefined : loaded,
    isFailed: loaded === 'failed',
    /** Also true while the choices are loaded again after a failure. */
    isLoading,
    retry: () => setAttempt(attempt + 1),
  };
}
