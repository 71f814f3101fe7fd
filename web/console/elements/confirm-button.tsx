// A button for an action that cannot be undone: the person types a given text first.
import { useRef, useState } from 'preact/hooks';
import type { ApiRequest } from '../api/request.ts';
import { send } from '../api/send.ts';
import { Curl } from './curl.tsx';
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
  const [error, setError] = useState<string>();
  const action = useAction();
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const isConfirmed = typed.trim() === word;
    setError(isConfirmed ? undefined : `Type ${word} to confirm`);
    if (!isConfirmed) return form.current?.querySelector('input')?.focus();
    if (await action.run(() => send(request))) onDone();
  };
  return (
    <details class="danger">
      <summary>{label} …</summary>
      <form ref={form} onSubmit={(event) => void submit(event)} noValidate>
        <p>{warning}</p>
        <TextField id={id} label={`Type ${word} to confirm`} value={typed} onChange={setTyped} error={error} />
        <button type="submit" class="button danger" aria-disabled={action.isBusy}>
          {label}
        </button>
        <Curl request={request} label={`${label} as a curl command`} />
        {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      </form>
    </details>
  );
}
