// Lists the problems of the definition. Each problem links to its position in the editor.

import { goTo } from './code-area.tsx';
import type { EditorProblem } from './definition-draft.ts';
import type { Check } from './use-check.ts';

export function Problems({ problems, check }: { problems: readonly EditorProblem[]; check: Check }) {
  return (
    <section
      class={problems.some(({ severity }) => severity === 'error') ? 'error-summary' : 'note'}
      aria-labelledby="problems-title"
    >
      <h3 id="problems-title">Problems</h3>
      <p role="status">{statusText(problems, check)}</p>
      <ul>
        {problems.map((problem) => (
          <li key={`${problem.control} ${problem.text}`}>
            <button type="button" class="link" onClick={() => goTo(problem)}>
              {problem.severity === 'warning' && 'Warning: '}
              {problem.text}
            </button>
          </li>
        ))}
      </ul>
      {check.truncated && <p>There are more than the listed hundred.</p>}
    </section>
  );
}

function statusText(problems: readonly EditorProblem[], check: Check): string {
  if (check.state === 'checking') return 'Checking …';
  if (check.state === 'failed') return `The definition could not be checked. ${check.failure?.message ?? ''}`;
  if (problems.length === 0) return 'No problems found.';
  return problems.length === 1 ? '1 problem found.' : `${problems.length} problems found.`;
}
