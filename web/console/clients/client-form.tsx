// Creates or edits a client of the tenant, in the tenant's configuration.
import { useState } from 'preact/hooks';
import { ApiProblem } from '../api/problem.ts';
import { send, sendOptional } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { Checkbox, TextArea, TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAction } from '../elements/use-action.ts';
import { type KeptValue, useKept } from '../session/kept.ts';
import {
  type Client,
  type ClientDocument,
  type ClientTexts,
  documentRequest,
  entryOf,
  linesOf,
  noClient,
  saveRequest,
  textsOf,
} from './client.ts';

interface Props {
  /** The client to edit; undefined for a new client. */
  client: Client | undefined;
  onSaved(id: string): void;
}

export function ClientForm({ client, onSaved }: Props) {
  const label = client ? `Client ${client.id}` : 'A new client';
  const draft = useKept(`client ${client?.id ?? ''}`, label, client ? textsOf(client) : noClient);
  const [errors, setErrors] = useState<FieldError[]>([]);
  const [attempt, setAttempt] = useState(0);
  const action = useAction();
  const texts = draft.value;
  const submit = async (event: Event) => {
    event.preventDefault();
    const found = errorsOf(texts);
    setErrors(found);
    setAttempt(attempt + 1);
    if (found.length > 0) return;
    const isDone = await action.run(() => save(texts, client === undefined));
    if (!isDone) return;
    draft.forget(client ? texts : noClient);
    onSaved(texts.id);
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <ErrorSummary errors={errors} attempt={attempt} />
      <Fields draft={draft} errors={errors} isNew={client === undefined} />
      <button type="submit" class="button" aria-disabled={action.isBusy}>
        Save client
      </button>
      <Curl request={saveRequest(texts.id || 'id', entryOf(texts))} label="Save client as a curl command" />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </form>
  );
}

/** Throws ApiProblem 409 if a new client has the id of one that exists, which would be replaced. */
async function save(texts: ClientTexts, isNew: boolean): Promise<void> {
  const document = await sendOptional<ClientDocument>(documentRequest);
  const clients = document?.latest?.configuration?.clients ?? {};
  const former = Object.hasOwn(clients, texts.id) ? clients[texts.id] : undefined;
  if (isNew && former) throw new ApiProblem(409, { detail: 'A client with this id exists. Choose another id.' });
  await send(saveRequest(texts.id, entryOf(texts, former)));
}

interface FieldsProps {
  draft: KeptValue<ClientTexts>;
  errors: readonly FieldError[];
  isNew: boolean;
}

function Fields({ draft, errors, isNew }: FieldsProps) {
  const field = (name: 'id' | 'name' | 'description' | 'redirectUris' | 'targets') => ({
    id: `client-${name}`,
    error: errorOf(errors, `client-${name}`),
    value: draft.value[name],
    onChange: (text: string) => draft.set({ ...draft.value, [name]: text }),
  });
  return (
    <>
      {isNew && (
        <TextField
          {...field('id')}
          label="Id"
          hint="Up to 50 letters, digits, hyphens and underscores. It is part of addresses."
        />
      )}
      <TextField {...field('name')} label="Name" />
      <TextField {...field('description')} label="Description (optional)" />
      <TextArea
        {...field('redirectUris')}
        label="Redirect URIs"
        hint="One in each line, such as https://permits.example.org/token-handler/clients/permits/callback"
        isCode
      />
      <TextArea
        {...field('targets')}
        label="Targets"
        hint="One in each line: an id, a space and the URN of the service, such as form-service urn:example:platform:form-service"
        isCode
      />
      <Checkbox
        id="client-keycloakLogout"
        label="Sign-out also ends the session at the identity provider"
        checked={draft.value.keycloakLogout}
        onChange={(keycloakLogout) => draft.set({ ...draft.value, keycloakLogout })}
      />
    </>
  );
}

const idPattern = /^[A-Za-z0-9 _-]{1,50}$/;

function errorsOf({ id, name, redirectUris, targets }: ClientTexts): FieldError[] {
  const errors: FieldError[] = [];
  if (!idPattern.test(id))
    errors.push({ id: 'client-id', text: 'Enter an id of 1 to 50 letters, digits, hyphens and underscores' });
  if (name.trim() === '') errors.push({ id: 'client-name', text: 'Enter a name' });
  const wrongUri = linesOf(redirectUris).find((uri) => !URL.canParse(uri));
  if (linesOf(redirectUris).length === 0)
    errors.push({ id: 'client-redirectUris', text: 'Enter at least one redirect URI' });
  else if (wrongUri) errors.push({ id: 'client-redirectUris', text: `${wrongUri} is not a URI` });
  const wrongTarget = linesOf(targets).find((line) => line.split(/\s+/).length !== 2);
  if (wrongTarget) errors.push({ id: 'client-targets', text: `“${wrongTarget}” must be an id, a space and a URN` });
  return errors;
}
