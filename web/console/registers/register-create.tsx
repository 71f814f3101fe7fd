// Creates a register without entries.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { useAction } from '../elements/use-action.ts';
import { addressOfPage, go } from '../location.ts';
import { useKept } from '../session/kept.ts';
import { createRequest } from './register.ts';

const namePattern = /^[\w-](?:[\w -]{0,48}[\w-])?$/;

export function RegisterCreate({ tenant }: { tenant: string }) {
  const draft = useKept('register', 'A new register', { name: '', description: '' });
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const announce = useAnnounce();
  const { name, description } = draft.value;
  const submit = async (event: Event) => {
    event.preventDefault();
    const found = nameErrors(name);
    setErrors(found);
    if (found.length > 0) return;
    const isDone = await action.run(() => send(createRequest({ name, description })));
    if (!isDone) return;
    draft.forget();
    go(addressOfPage(tenant, ['registers', name]));
    announce(`The register ${name} was created.`);
  };
  return (
    <details open={draft.isKept}>
      <summary>Create a register</summary>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <ErrorSummary errors={errors} />
        <TextField
          id="register-name"
          label="Name"
          hint="Up to 50 letters, digits, spaces, hyphens and underscores. It cannot be changed."
          error={errorOf(errors, 'register-name')}
          value={name}
          onChange={(text) => draft.set({ ...draft.value, name: text })}
        />
        <TextField
          id="register-description"
          label="Description (optional)"
          value={description}
          onChange={(text) => draft.set({ ...draft.value, description: text })}
        />
        <button type="submit" class="button" aria-disabled={action.isBusy}>
          Create
        </button>
        <Curl request={createRequest({ name: name || 'name', description })} label="Create as a curl command" />
        {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      </form>
    </details>
  );
}

function nameErrors(name: string): FieldError[] {
  const id = 'register-name';
  if (name === '') return [{ id, text: 'Enter a name' }];
  if (namePattern.test(name)) return [];
  return [{ id, text: 'The name must be 1 to 50 letters, digits, spaces, hyphens and underscores' }];
}
