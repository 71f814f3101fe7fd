// A button for an action that cannot be undone: the person types a given text first.
import { useState } from 'preact/hooks';
import type { ApiRequest } from '../api/request.ts';
import { send } from '../api/send.ts';
import { Curl } from './curl.tsx';
import { ErrorSummary } from './error-summary.tsx';
import { errorOf, type FieldError } from './field-error.ts';
import { TextField } from './fields.tsx';
import { ProblemBox } from './problem-box.tsx';
import { useAction } from './use-action.ts';

interface Props {
  id: string;
  label: string;
  /** The consequences of the action, in one sentence. */
  warning: string;
  /** The text that the person has to type. */
  word: string;
  request: ApiRequest;
  onDone(): void;
}

export function ConfirmButton({ id, label, warning, word, request, onDone }: Props) {
  const [typed, setTyped] = useState('');
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const submit = async (event: Event) => {
    event.preventDefault();
    const isConfirmed = typed.trim() === word;
    setErrors(isConfirmed ? [] : [{ id, text: `Type ${word} to confirm` }]);
    if (isConfirmed && (await action.run(() => send(request)))) onDone();
  };
  return (
    <details class="danger">
      <summary>{label} …</summary>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <ErrorSummary errors={errors} />
        <p>{warning}</p>
        <TextField
          id={id}
          label={`Type ${word} to confirm`}
          value={typed}
          onChange={setTyped}
          error={errorOf(errors, id)}
        />
        <button type="submit" class="button danger" aria-disabled={action.isBusy}>
          {label}
        </button>
        <Curl request={request} label={`${label} as a curl command`} />
        {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      </form>
    </details>
  );
}
