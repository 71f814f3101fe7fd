// Registers a client at the identity provider, with a registration token or with the credentials of a client that
// exists there. Both are secrets: they stay only in the page's memory, and are cleared when there is a response.
import { useState } from 'preact/hooks';
import { asProblem } from '../api/problem.ts';
import type { ApiRequest } from '../api/request.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { TextArea, TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { Facts } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { useAction } from '../elements/use-action.ts';
import { useKept } from '../session/kept.ts';
import {
  type Client,
  linesOf,
  type Registration,
  redirectUrisProblem,
  redirectUrisRequest,
  refusedRedirectUris,
  registerRequest,
} from './client.ts';

interface Props {
  client: Client;
  onChanged(text: string): void;
}

export function ClientRegistration({ client, onChanged }: Props) {
  const { registration } = client;
  return (
    <section aria-labelledby="registration-title">
      <h2 id="registration-title">Registration</h2>
      {registration ? (
        <Registered registration={registration} />
      ) : (
        <p>This client is not registered at the identity provider of the tenant, so nobody can sign in with it.</p>
      )}
      {registration?.management === 'kept' && <RedirectUris client={client} onChanged={onChanged} />}
      <details>
        <summary>{registration ? 'Register again' : 'Register'} with a registration token</summary>
        <ByToken client={client} onChanged={onChanged} />
      </details>
      <details>
        <summary>Use a client that exists at the identity provider</summary>
        <ByCredentials client={client} onChanged={onChanged} />
      </details>
    </section>
  );
}

const managements: Record<Registration['management'], string> = {
  kept: 'The token handler can change and replace it.',
  lost: 'The token that manages it was lost: register it again before you change it.',
  unsupported: 'The identity provider does not allow the token handler to change it.',
  provided: 'An administrator created it at the identity provider; it is never changed or deleted from here.',
};

function Registered({ registration }: { registration: Registration }) {
  return (
    <Facts
      facts={[
        ['Id at the identity provider', registration.clientId],
        ['Registered', <Time key="time" at={registration.registeredAt} />],
        ['Redirect URIs', registration.redirectUris.join(', ') || 'None'],
        ['Management', managements[registration.management]],
      ]}
    />
  );
}

const shownSecret = '…';

/** Sends a request with a secret. Calls `forget` unless there was no response: the person may then try again. */
async function sendSecret(request: ApiRequest, forget: () => void): Promise<void> {
  const problem = await send(request).then(() => undefined, asProblem);
  if (problem?.status !== 0) forget();
  if (problem) throw problem;
}

function ByToken({ client, onChanged }: Props) {
  const [token, setToken] = useState('');
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const submit = async (event: Event) => {
    event.preventDefault();
    const registrationToken = token.trim();
    setErrors(registrationToken === '' ? [{ id: 'registration-token', text: 'Enter a registration token' }] : []);
    if (registrationToken === '') return;
    const request = registerRequest(client.id, { registrationToken });
    if (await action.run(() => sendSecret(request, () => setToken(''))))
      onChanged('The client is registered: people can sign in.');
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <ErrorSummary errors={errors} />
      <TextField
        id="registration-token"
        type="password"
        autocomplete="new-password"
        label="Registration token"
        hint="An initial access token of the realm. It is sent once and stored nowhere."
        error={errorOf(errors, 'registration-token')}
        value={token}
        onChange={setToken}
      />
      <button type="submit" class="button" aria-disabled={action.isBusy}>
        Register
      </button>
      <Curl
        request={registerRequest(client.id, { registrationToken: shownSecret })}
        label="Register as a curl command"
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </form>
  );
}

function ByCredentials({ client, onChanged }: Props) {
  const [id, setId] = useState('');
  const [secret, setSecret] = useState('');
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const submit = async (event: Event) => {
    event.preventDefault();
    const missing = [
      ...(id.trim() === '' ? [{ id: 'provided-id', text: 'Enter the client id' }] : []),
      ...(secret === '' ? [{ id: 'provided-secret', text: 'Enter the client secret' }] : []),
    ];
    setErrors(missing);
    if (missing.length > 0) return;
    const request = registerRequest(client.id, { clientId: id.trim(), clientSecret: secret });
    if (await action.run(() => sendSecret(request, () => setSecret(''))))
      onChanged('The client uses these credentials: people can sign in.');
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <ErrorSummary errors={errors} />
      <TextField
        id="provided-id"
        label="Client id at the identity provider"
        error={errorOf(errors, 'provided-id')}
        value={id}
        onChange={setId}
      />
      <TextField
        id="provided-secret"
        type="password"
        autocomplete="new-password"
        label="Client secret"
        hint="It is sent once, and stored encrypted by the token handler."
        error={errorOf(errors, 'provided-secret')}
        value={secret}
        onChange={setSecret}
      />
      <button type="submit" class="button" aria-disabled={action.isBusy}>
        Use this client
      </button>
      <Curl
        request={registerRequest(client.id, { clientId: id || 'client-id', clientSecret: shownSecret })}
        label="Use this client as a curl command"
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </form>
  );
}

function RedirectUris({ client, onChanged }: Props) {
  const present = (client.registration?.redirectUris ?? []).join('\n');
  const draft = useKept(`redirect-uris ${client.id}`, `Registered redirect URIs of ${client.id}`, present);
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const uris = linesOf(draft.value);
  const request = redirectUrisRequest(client.id, uris);
  const submit = async (event: Event) => {
    event.preventDefault();
    let problem = redirectUrisProblem(draft.value);
    const replace = () =>
      send(request).catch((cause: unknown) => {
        problem = refusedRedirectUris(asProblem(cause), uris);
        if (problem === undefined) throw cause;
      });
    const isSettled = problem !== undefined || (await action.run(replace));
    setErrors(problem === undefined ? [] : [{ id: 'registered-uris', text: problem }]);
    if (problem !== undefined || !isSettled) return;
    draft.forget(draft.value);
    onChanged('The registered redirect URIs were replaced.');
  };
  return (
    <details>
      <summary>Change the registered redirect URIs</summary>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <ErrorSummary errors={errors} />
        <TextArea
          id="registered-uris"
          label="Registered redirect URIs"
          hint="One in each line. They replace the current ones."
          isCode
          error={errorOf(errors, 'registered-uris')}
          value={draft.value}
          onChange={(text) => draft.set(text)}
        />
        <button type="submit" class="button quiet" aria-disabled={action.isBusy}>
          Replace
        </button>
        <Curl request={request} label="Replace as a curl command" />
        {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      </form>
    </details>
  );
}
