// Asks before the draft and its data are deleted. The service demands a code that was entered in this browser within
// the last half hour, because the cookie of a form may have been left on a shared computer.
import { useState } from 'preact/hooks';
import { ErrorSummary } from '../../shared/error-summary.tsx';
import { asProblem, endOf } from '../api.ts';
import type { Message } from '../texts/texts.ts';
import { useSlow } from '../use-slow.ts';
import { Page } from './frame.tsx';
import { problemText } from './problem-text.ts';
import type { SharedProps } from './shared-props.ts';

interface DeleteProps extends SharedProps {
  onKept(): void;
  onDeleted(): void;
  onEnd(reason: 'locked' | 'submitted'): void;
}

export function DeletePage({ frame, form, draft, onKept, onDeleted, onEnd }: DeleteProps) {
  const { api, formId, texts } = form;
  const [refusal, setError] = useState<{ text: Message }>();
  const [attempt, setAttempt] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const isSlow = useSlow(isBusy);
  const refused = (cause: unknown) => {
    const problem = asProblem(cause);
    const end = endOf(problem);
    if (problem.status === 401) draft.work.requireCode();
    else if (end === 'gone') onDeleted();
    else if (end) onEnd(end);
    else {
      setError({ text: (now) => problemText(cause, now, now.code.tooMany) });
      setAttempt((last) => last + 1);
    }
  };
  const remove = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    await api.remove(formId).then(onDeleted, refused);
    setBusy(false);
  };
  const error = refusal?.text(texts);
  return (
    <Page frame={frame} title={texts.deletion.title} pageKey="delete" hasErrors={error !== undefined}>
      <ErrorSummary
        title={texts.problem}
        attempt={attempt}
        items={error ? [{ text: error, target: 'delete-draft' }] : []}
      />
      <p>{texts.deletion.final}</p>
      <p>{texts.deletion.code}</p>
      <div class="buttons">
        <button type="button" id="delete-draft" aria-disabled={isBusy} onClick={() => void remove()}>
          {texts.deletion.confirm}
        </button>
        <button type="button" class="quiet" onClick={onKept}>
          {texts.deletion.keep}
        </button>
        <span role="status">{isSlow && texts.wait}</span>
      </div>
    </Page>
  );
}
