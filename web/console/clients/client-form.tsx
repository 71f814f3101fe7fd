// Creates or edits a client of the tenant, in the tenant's configuration.
import { useState } from 'preact/hooks';
import { isEqual } from '../../apply/model/json.ts';
import { ApiProblem } from '../api/problem.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { Checkbox, TextArea, TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Unsaved } from '../elements/unsaved.tsx';
import { useAction } from '../elements/use-action.ts';
import { useKept } from '../session/kept.ts';
import {
  type ClientEntry,
  type ClientTexts,
  configuredClient,
  entryOf,
  linesOf,
  noClient,
  redirectUrisProblem,
  saveRequest,
  textsOf,
} from './client.ts';
import { storedEntry } from './stored-client.ts';

interface Stored {
  id: string;
  /** The client in the tenant's configuration. */
  entry: ClientEntry;
}

interface Props {
  /** The client to edit; undefined for a new client. */
  stored: Stored | undefined;
  onSaved(id: string): void;
}

/** The texts of the fields. `base` is the entry that they were made from; it serves to detect concurrent changes. */
interface KeptClient {
  texts: ClientTexts;
  base: ClientEntry | undefined;
}

const keptOf = (stored: Stored | undefined): KeptClient => ({
  texts: stored ? textsOf(configuredClient(stored.id, stored.entry)) : noClient,
  base: stored?.entry,
});

export function ClientForm({ stored, onSaved }: Props) {
  const label = stored ? `Client ${stored.id}` : 'A new client';
  const kept = useKept(`client-entry ${stored?.id ?? ''}`, label, keptOf(stored));
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const announce = useAnnounce();
  const { texts, base } = kept.value;
  const submit = async (overwrites: boolean) => {
    const found = errorsOf(texts);
    setErrors(found);
    if (found.length > 0) return;
    let saved: ClientEntry | undefined;
    const isDone = await action.run(async () => {
      saved = await save(kept.value, overwrites);
    });
    if (!isDone) return;
    kept.forget(stored ? { texts, base: saved } : keptOf(undefined));
    onSaved(texts.id);
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void submit(false);
  };
  const discard = (id: string) =>
    action.run(async () => {
      const entry = await storedEntry(id);
      if (!entry) throw new ApiProblem(404, { detail: 'This client was deleted.' });
      kept.forget(keptOf({ id, entry }));
      setErrors([]);
      announce('Your changes were discarded.');
    });
  return (
    <form onSubmit={onSubmit} noValidate>
      {stored && kept.isKept && <Unsaved onDiscard={() => void discard(stored.id)} />}
      <ErrorSummary errors={errors} />
      <Fields texts={texts} set={(next) => kept.set({ texts: next, base })} errors={errors} isNew={!stored} />
      <button type="submit" class="button" aria-disabled={action.isBusy}>
        Save client
      </button>
      <Curl request={saveRequest(texts.id || 'id', entryOf(texts, base))} label="Save client as a curl command" />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      {action.problem?.status === 412 && (
        <button type="button" class="button danger" onClick={() => void submit(true)}>
          Replace that change with mine
        </button>
      )}
    </form>
  );
}

/**
 * Saves the client and returns its new entry. Throws ApiProblem 409 if the id of a new client is taken, because a save
 * would replace the existing client. Throws 412 if the client was changed since its texts were put into the fields.
 */
async function save({ texts, base }: KeptClient, overwrites: boolean): Promise<ClientEntry> {
  const present = await storedEntry(texts.id);
  if (!base && present) throw new ApiProblem(409, { detail: 'A client with this id exists. Choose another id.' });
  if (base && !overwrites && !isEqual(present, base))
    throw new ApiProblem(412, { detail: 'Somebody has changed or deleted this client since you opened it.' });
  // If the client has been deleted since, the members that have no field are restored from `base`.
  const entry = entryOf(texts, present ?? base);
  await send(saveRequest(texts.id, entry));
  return entry;
}

interface FieldsProps {
  texts: ClientTexts;
  set(texts: ClientTexts): void;
  errors: readonly FieldError[];
  isNew: boolean;
}

function Fields({ texts, set, errors, isNew }: FieldsProps) {
  const field = (name: 'id' | 'name' | 'description' | 'redirectUris' | 'targets') => ({
    id: `client-${name}`,
    error: errorOf(errors, `client-${name}`),
    value: texts[name],
    onChange: (text: string) => set({ ...texts, [name]: text }),
  });
  return (
    <>
      {isNew && (
        <TextField
          {...field('id')}
          label="Id"
          hint="Up to 50 letters, digits, spaces, hyphens and underscores. It is part of addresses."
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
        checked={texts.keycloakLogout}
        onChange={(keycloakLogout) => set({ ...texts, keycloakLogout })}
      />
    </>
  );
}

const idPattern = /^[A-Za-z0-9 _-]{1,50}$/;

function errorsOf({ id, name, redirectUris, targets }: ClientTexts): FieldError[] {
  const errors: FieldError[] = [];
  if (!idPattern.test(id))
    errors.push({ id: 'client-id', text: 'Enter an id of 1 to 50 letters, digits, spaces, hyphens and underscores' });
  if (name.trim() === '') errors.push({ id: 'client-name', text: 'Enter a name' });
  const wrongUris = redirectUrisProblem(redirectUris);
  if (wrongUris !== undefined) errors.push({ id: 'client-redirectUris', text: wrongUris });
  const wrongTarget = linesOf(targets).find((line) => line.split(/\s+/).length !== 2);
  if (wrongTarget) errors.push({ id: 'client-targets', text: `“${wrongTarget}” must be an id, a space and a URN` });
  return errors;
}
