// The script of /docs/try: sends each HTML form as a call of the API through the token handler, with the session of the
// console. It shows responses as text only.
import type { Session } from '../token-handler-client/session.ts';
import { TokenHandlerClient } from '../token-handler-client/token-handler-client.ts';

// A session of another tenant counts as signed out: an administrator of that tenant may have made the link that signed
// the person in, and would get what the person sends.
const given = new URLSearchParams(location.search).get('tenant') ?? '';
const client = new TokenHandlerClient({ clientId: 'formgate-console', tenant: given });
const target = '/token-handler/targets/form-service';

const find = <E extends HTMLElement = HTMLElement>(selector: string, root: ParentNode = document): E => {
  const found = root.querySelector<E>(selector);
  if (!found) throw new Error(`no ${selector}`);
  return found;
};
const status = find('#status');
const tenant = find<HTMLInputElement>('#tenant');
const signOut = find('#sign-out');

const failures: Record<string, string> = {
  access_denied: 'The sign-in was cancelled or refused.',
  login_required: 'You have to sign in.',
};
const texts = {
  // Without a tenant in the address, every session counts as signed out.
  'signed-out': given === '' ? 'Enter the tenant, and sign in.' : 'Nobody is signed in.',
  expired: 'Your session has ended. What you typed is still here.',
  expiring: 'Your session ends soon. Any call extends it.',
};

const signedInText = ({ name, tenant: of, tenantId }: Session) =>
  `Signed in as ${name}, tenant ${of?.name ?? tenantId}.`;
/** The expiry about which the page warns. */
let warned: string | undefined;

client.on((event) => {
  if (event.type === 'unauthorized') return;
  const error = client.signInError();
  status.textContent =
    (error && failures[error]) || (event.type === 'signed-in' ? signedInText(event.session) : texts[event.type]);
  warned = event.type === 'expiring' ? event.session.expiry : undefined;
  const isOut = !client.session;
  find('#who').hidden = !isOut;
  find('#sign-in').hidden = !isOut;
  signOut.hidden = isOut;
  if (isOut) for (const pre of document.querySelectorAll('pre')) pre.hidden = true;
});
tenant.value = given;

find('#session').addEventListener('submit', (event) => {
  event.preventDefault();
  const returnTo = `${location.pathname}?${new URLSearchParams({ tenant: tenant.value })}`;
  client.signIn({ tenant: tenant.value, returnTo });
});
signOut.addEventListener('click', () => client.signOut(location.pathname));

for (const form of document.querySelectorAll<HTMLFormElement>('form[data-path]'))
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void send(form);
  });

async function send(form: HTMLFormElement): Promise<void> {
  const { method = 'GET', path = '' } = form.dataset;
  const button = find('button', form);
  if (button.ariaDisabled === 'true') return;
  if (method === 'DELETE' && !confirm(`Send DELETE ${path}?`)) return;
  button.ariaDisabled = 'true';
  const line = find('[role=status]', form);
  const shown = find('pre', form);
  line.textContent = 'Sending …';
  shown.hidden = true;
  const started = performance.now();
  try {
    const response = await client.fetch(...requestOf(form, method, path));
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    shown.textContent = `${headers}\n\n${readable(await response.text())}`;
    shown.hidden = false;
    line.textContent = `${response.status} ${response.statusText}, ${Math.round(performance.now() - started)} ms`;
  } catch (error) {
    line.textContent = error instanceof PathError ? error.message : 'The server cannot be reached.';
  } finally {
    button.ariaDisabled = null;
    void removeWarning();
  }
}

/** Removes the warning if a call has extended the session. */
async function removeWarning(): Promise<void> {
  if (warned === undefined) return;
  const session = await client.read().catch(() => null);
  if (session && session.expiry !== warned) status.textContent = signedInText(session);
}

function requestOf(form: HTMLFormElement, method: string, path: string): [URL, RequestInit] {
  const headers = new Headers();
  const query = new URLSearchParams();
  let address = path;
  for (const { name, value, dataset } of form.querySelectorAll<HTMLInputElement>('input[data-in]')) {
    if (dataset.in === 'path') address = address.replace(`{${name}}`, pathPart(value));
    else if (value !== '' && dataset.in === 'query') query.set(name, value);
    else if (value !== '') headers.set(name, value);
  }
  const body = form.querySelector('textarea');
  if (body) headers.set('Content-Type', body.dataset.type ?? 'application/json');
  const url = new URL(`${target}${address}`, location.origin);
  url.search = query.toString();
  return [url, { method, headers, ...(body && { body: body.value }) }];
}

/** Encodes a part of a path. Throws for a part that the browser would resolve: the request would go elsewhere. */
function pathPart(value: string): string {
  if (value === '.' || value === '..')
    throw new PathError(`A path cannot contain the part "${value}". Nothing was sent.`);
  return encodeURIComponent(value);
}

class PathError extends Error {}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
