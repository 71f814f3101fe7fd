// The steps that all changes of a register share: the lock, publishing entries, and what a failure midway reports.
import { Problem } from '../../service/http/problem.ts';
import { fitsIntoBody, type Parts } from './register.ts';
import type { HoldRegister, RegisterLock } from './register-lock.ts';
import type { CallContext, RegisterStore } from './store.ts';

export type Call = Omit<CallContext, 'timeoutMs'>;

/**
 * Returns a function that runs `work` under a register's lock. `step` returns the context of the next call, or throws if
 * it is too late.
 */
export function lockWith(hold: HoldRegister) {
  return <T>(name: string, call: Call, work: (lock: RegisterLock, step: () => CallContext) => Promise<T>): Promise<T> =>
    hold(call.tenantId, name, (lock) => work(lock, () => ({ ...call, timeoutMs: lock.timeForStep() })));
}

/** Writes the entries and publishes them: a pin on an older revision moves to the new one. */
export async function publish(
  store: RegisterStore,
  name: string,
  entries: readonly unknown[],
  { active }: Parts,
  step: () => CallContext,
): Promise<readonly unknown[]> {
  const written = await store.writeEntries(name, entries, step());
  if (active && active.revision !== written.revision)
    await afterChange('the entries, but not as the active revision', () => store.pin(name, written.revision, step()));
  return Array.isArray(written.configuration) ? written.configuration : entries;
}

/**
 * Runs the steps that follow a change. If they fail, the problem says what was written; it is never a 4xx, because that
 * would say that nothing was.
 */
export async function afterChange<T>(written: string, steps: () => Promise<T>): Promise<T> {
  try {
    return await steps();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { status, slug, headers, members, detail } = error;
    const earlier: unknown[] = Array.isArray(members.written) ? members.written : [];
    const advice = earlier.length > 0 ? '' : ' The request was only carried out in part: repeat it.';
    const options = { cause: error, headers, members: { ...members, written: [written, ...earlier] } };
    throw new Problem(status < 500 ? 'dependency-failed' : slug, detail + advice, options);
  }
}

export function requireFit(entries: readonly unknown[]): void {
  if (fitsIntoBody(entries)) return;
  throw new Problem('body-too-large', 'The entries, as the configuration service stores them, must be at most 1 MiB.');
}

export function notFound(): Problem {
  return new Problem('not-found', 'There is no register with this name.');
}
