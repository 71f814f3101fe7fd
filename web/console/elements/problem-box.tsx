// Shows a failed request: what happened, and what to do.
import { useEffect, useRef } from 'preact/hooks';
import { type ApiProblem, updatedStatus } from '../api/problem.ts';

const titles: Record<number, string> = {
  [updatedStatus]: 'The console was updated',
  0: 'No connection',
  // If the session had ended, the console would show another page. Here, the service itself has refused the account.
  401: 'Your account may not use this service',
  403: 'You may not do this',
  404: 'Not found',
  409: 'This is not possible now',
  410: 'This was deleted',
  412: 'Somebody else has changed this',
  429: 'Too many requests',
};

const withoutRetry = new Set([updatedStatus, 403, 404]);

interface Props {
  problem: ApiProblem;
  onRetry?: (() => void) | undefined;
  /** If true, the focus moves to this box when the problem appears, after an action of the person. */
  takesFocus?: boolean;
}

export function ProblemBox({ problem, onRetry, takesFocus = false }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (takesFocus) box.current?.focus();
  }, [problem, takesFocus]);
  return (
    <div class="problem" role="alert" tabIndex={-1} ref={box}>
      <h2>
        {titles[problem.status] ?? (problem.status >= 500 ? 'The service has a problem' : 'The request was refused')}
      </h2>
      <p>{problem.message}</p>
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map(({ pointer, detail }) => (
            <li key={`${pointer} ${detail}`}>
              <code>{pointer || '/'}</code>: {detail}
            </li>
          ))}
        </ul>
      )}
      {problem.status === updatedStatus && (
        <button type="button" class="button quiet" onClick={() => location.reload()}>
          Load the page again
        </button>
      )}
      {onRetry && !withoutRetry.has(problem.status) && (
        <button type="button" class="button quiet" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
