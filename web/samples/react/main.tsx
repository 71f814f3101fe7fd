// A frontend in React: one component, which uses TokenHandlerClient.
import { type FormEvent, useCallback, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { TokenHandlerClient } from '../../token-handler-client/token-handler-client.ts';

const forms = '/token-handler/targets/form-service/form/v1/forms';
/** A copy of the typed text. The option `keep` reads this copy, because `keep` runs outside of React. */
let typed = '';
const client = new TokenHandlerClient({ clientId: 'my-app', tenant: 'demo', keep: () => typed });

const texts = {
  'signed-out': 'Nobody is signed in',
  expiring: 'Your session ends soon',
  expired: 'Your session has ended. What you typed is kept.',
};
type State = 'loading' | 'signed-in' | keyof typeof texts;

interface Form {
  id: string;
  definitionId: string;
  status: string;
}

function App() {
  const [state, setState] = useState<State>('loading');
  const [list, setList] = useState<Form[]>([]);
  const [definitionId, setDefinitionId] = useState('');
  const [problem, setProblem] = useState('');
  typed = definitionId;

  const load = useCallback(async () => {
    const response = await client.fetch(`${forms}?mine=true`);
    if (response.ok) setList((await response.json()).results);
  }, []);

  useEffect(
    () =>
      client.on((event) => {
        if (event.type === 'unauthorized') return;
        setState(event.type);
        if (!client.session) setList([]);
        if (event.type !== 'signed-in') return;
        const kept = client.restore();
        if (typeof kept === 'string') setDefinitionId(kept);
        void load();
      }),
    [load],
  );

  async function create(event: FormEvent) {
    event.preventDefault();
    setProblem('');
    const headers = { 'Content-Type': 'application/json' };
    const response = await client.fetch(forms, { method: 'POST', headers, body: JSON.stringify({ definitionId }) });
    if (response.status === 401) return;
    if (response.ok) await load();
    else setProblem((await response.json()).detail);
  }

  const isOpen = state === 'signed-in' || state === 'expiring';
  const text = state === 'signed-in' ? `Signed in as ${client.session?.name}` : state === 'loading' ? '' : texts[state];
  return (
    <>
      <h1>My forms</h1>
      <p role="status">{problem || text}</p>
      <p>
        {state === 'expiring' && (
          <button type="button" onClick={() => void load().then(() => setState('signed-in'))}>
            Stay signed in
          </button>
        )}
        {!isOpen && state !== 'loading' && (
          <button type="button" onClick={() => client.signIn()}>
            Sign in
          </button>
        )}
        {isOpen && (
          <button type="button" onClick={() => client.signOut(location.pathname)}>
            Sign out
          </button>
        )}
      </p>
      <form onSubmit={(event) => void create(event)}>
        <label>
          Kind of form <input value={definitionId} onChange={({ target }) => setDefinitionId(target.value)} required />
        </label>{' '}
        <button type="submit">Create draft</button>
      </form>
      <ul>
        {list.map(({ id, definitionId: kind, status }) => (
          <li key={id}>
            {kind}: {status}
          </li>
        ))}
      </ul>
    </>
  );
}

const root = document.getElementById('root');
if (root) createRoot(root).render(<App />);
