// A frontend without a framework and without a build step.
import { TokenHandlerClient } from './token-handler-client.js';

const find = (id) => document.getElementById(id);
const [status, stay, signIn, signOut, form, list] = ['status', 'stay', 'sign-in', 'sign-out', 'new', 'forms'].map(find);
const field = form.elements.namedItem('definitionId');
const forms = '/token-handler/targets/form-service/form/v1/forms';

const client = new TokenHandlerClient({ clientId: 'my-app', tenant: 'demo', keep: () => field.value });

client.on((event) => {
  if (event.type === 'unauthorized') return;
  show(event.type);
  if (event.type !== 'signed-in') return;
  field.value = client.restore() ?? field.value;
  void load();
});

function show(state) {
  const { session } = client;
  status.textContent = {
    'signed-in': `Signed in as ${session?.name}`,
    'signed-out': 'Nobody is signed in',
    expiring: 'Your session ends soon',
    expired: 'Your session has ended. What you typed is kept.',
  }[state];
  stay.hidden = state !== 'expiring';
  signIn.hidden = Boolean(session);
  signOut.hidden = !session;
  if (!session) list.replaceChildren();
}

/** Any request to a target extends the session. */
async function load() {
  const response = await client.fetch(`${forms}?mine=true`);
  if (!response.ok) return;
  const { results } = await response.json();
  const items = results.map(({ definitionId, status }) => {
    const item = document.createElement('li');
    // Text, never HTML: the values come from people.
    item.textContent = `${definitionId}: ${status}`;
    return item;
  });
  list.replaceChildren(...items);
}

async function create() {
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ definitionId: field.value });
  const response = await client.fetch(forms, { method: 'POST', headers, body });
  if (response.status === 401) return;
  if (!response.ok) status.textContent = (await response.json()).detail;
  else await load();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  void create();
});
signIn.addEventListener('click', () => client.signIn());
signOut.addEventListener('click', () => client.signOut(location.pathname));
stay.addEventListener('click', () => void load().then(() => show('signed-in')));
