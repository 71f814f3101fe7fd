// Creates a form definition in a separate document, with one question to begin with.
import { useState } from 'preact/hooks';
import { ApiProblem } from '../api/problem.ts';
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
import { locate } from './configuration.ts';
import { type Definition, saveRequests } from './definition.ts';

const idPattern = /^[A-Za-z0-9 _-]{1,50}$/;
const id = 'definition-id';

export function DefinitionCreate({ tenant }: { tenant: string }) {
  const draft = useKept('definition', 'A new form definition', { id: '', name: '' });
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const announce = useAnnounce();
  const { value } = draft;
  const [request] = saveRequests(value.id || 'id', 'document', emptyDefinition(value.id, value.name), {});
  const submit = async (event: Event) => {
    event.preventDefault();
    const found = errorsOf(value);
    setErrors(found);
    if (found.length > 0 || !request) return;
    const isDone = await action.run(async () => {
      await requireFree(value.id);
      await send(request);
    });
    if (!isDone) return;
    draft.forget({ id: '', name: '' });
    go(addressOfPage(tenant, ['definitions', value.id]));
    announce(`The form definition ${value.name} was created.`);
  };
  return (
    <details open={draft.isKept}>
      <summary>Create a form definition</summary>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <ErrorSummary errors={errors} />
        <TextField
          id={id}
          label="Id"
          hint="Up to 50 letters, digits, spaces, hyphens and underscores, such as dog-licence. It cannot be changed."
          error={errorOf(errors, id)}
          value={value.id}
          onChange={(text) => draft.set({ ...value, id: text })}
        />
        <TextField
          id="definition-name"
          label="Name"
          error={errorOf(errors, 'definition-name')}
          value={value.name}
          onChange={(text) => draft.set({ ...value, name: text })}
        />
        <button type="submit" class="button" aria-disabled={action.isBusy}>
          Create
        </button>
        {request && <Curl request={request} label="Create as a curl command" />}
        {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      </form>
    </details>
  );
}

function emptyDefinition(definitionId: string, name: string): Definition {
  const dataSchema = { type: 'object', properties: { name: { type: 'string', title: 'Your name' } } };
  const uiSchema = { type: 'VerticalLayout', elements: [{ type: 'Control', scope: '#/properties/name' }] };
  return { id: definitionId, name, anonymousApply: false, applicantRoles: [], dataSchema, uiSchema };
}

/** Throws if the id is taken, because a REPLACE would overwrite the existing definition. */
async function requireFree(definitionId: string): Promise<void> {
  const isTaken = await locate(definitionId).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiProblem && error.status === 404) return false;
      throw error;
    },
  );
  if (isTaken) throw new ApiProblem(409, { detail: 'A form definition with this id exists. Choose another id.' });
}

function errorsOf({ id: definitionId, name }: { id: string; name: string }): FieldError[] {
  const errors: FieldError[] = [];
  if (!idPattern.test(definitionId))
    errors.push({ id, text: 'Enter an id of 1 to 50 letters, digits, spaces, hyphens and underscores' });
  if (name.trim() === '') errors.push({ id: 'definition-name', text: 'Enter a name' });
  return errors;
}
