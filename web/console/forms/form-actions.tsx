// The actions that an administrator may perform on a form in its current status. Each action explains its consequences.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { ActionButton } from '../elements/action-button.tsx';
import { ConfirmButton } from '../elements/confirm-button.tsx';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { TextArea } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAction } from '../elements/use-action.ts';
import { useKept } from '../session/kept.ts';
import { deleteRequest, type Form, isIn, type Operation, operationRequest, type Status } from './form.ts';

interface OneOperation {
  operation: Operation;
  label: string;
  statuses: readonly Status[];
  about: string;
  done: string;
}

const operations: readonly OneOperation[] = [
  {
    operation: 'unlock',
    label: 'Unlock',
    statuses: ['locked'],
    about: 'Makes the form a draft again. The applicant is notified.',
    done: 'The form is a draft again.',
  },
  {
    operation: 'archive',
    label: 'Archive',
    statuses: ['submitted'],
    about: 'Ends the processing of the form.',
    done: 'The form is archived.',
  },
  {
    operation: 'to-draft',
    label: 'Return to draft',
    statuses: ['submitted'],
    about: 'The applicant can change and submit the form again.',
    done: 'The form is a draft again.',
  },
];

interface Props {
  form: Form;
  /** Called with the changed form, and with the text to announce. */
  onChanged(form: Form, text: string): void;
  onDeleted(): void;
}

export function FormActions({ form, onChanged, onDeleted }: Props) {
  return (
    <section aria-labelledby="actions-title">
      <h2 id="actions-title">Actions</h2>
      {operations
        .filter(({ statuses }) => isIn(form, ...statuses))
        .map(({ operation, label, about, done }) => (
          <ActionButton<Form>
            key={operation}
            label={label}
            request={operationRequest(form.id, operation)}
            onDone={(next) => onChanged(next, done)}
          >
            <p>{about}</p>
          </ActionButton>
        ))}
      {form.held ? (
        <ActionButton<Form>
          label="Release"
          request={operationRequest(form.id, 'release')}
          onDone={(next) => onChanged(next, 'The form is no longer on hold.')}
        >
          <p>Ends the hold. The period until the form is locked or deleted starts again.</p>
        </ActionButton>
      ) : (
        <Hold form={form} onChanged={onChanged} />
      )}
      {form.held ? (
        <p class="note">A form on hold cannot be deleted. Release it first.</p>
      ) : (
        <ConfirmButton
          id="delete-word"
          label="Delete this form"
          warning="Deletes the form, its data and the applicant’s information. This cannot be undone."
          word={form.id.slice(-6)}
          request={deleteRequest(form.id)}
          onDone={onDeleted}
        />
      )}
    </section>
  );
}

const reasonId = 'hold-reason';

function reasonErrors(text: string): FieldError[] {
  if (text === '') return [{ id: reasonId, text: 'Enter a reason' }];
  return text.length > 500 ? [{ id: reasonId, text: 'The reason must be 500 characters or fewer' }] : [];
}

function Hold({ form, onChanged }: Omit<Props, 'onDeleted'>) {
  const reason = useKept(`hold ${form.id}`, `Reason for holding form ${form.id}`, '');
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const text = reason.value.trim();
  const submit = async (event: Event) => {
    event.preventDefault();
    const found = reasonErrors(text);
    setErrors(found);
    if (found.length > 0) return;
    await action.run(async () => {
      const next = await send<Form>(operationRequest(form.id, 'hold', text));
      reason.forget();
      onChanged(next, 'The form is on hold.');
    });
  };
  return (
    <form class="action" onSubmit={(event) => void submit(event)} noValidate>
      <ErrorSummary errors={errors} />
      <TextArea
        id={reasonId}
        label="Put on hold: reason"
        hint="The form is then neither locked nor deleted. Administrators see the reason; do not enter personal data."
        error={errorOf(errors, reasonId)}
        rows={2}
        value={reason.value}
        onChange={(text) => reason.set(text)}
      />
      <button type="submit" class="button quiet" aria-disabled={action.isBusy}>
        Put on hold
      </button>
      <Curl request={operationRequest(form.id, 'hold', text || 'reason')} label="Put on hold as a curl command" />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </form>
  );
}
