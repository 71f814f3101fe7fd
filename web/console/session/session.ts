// The session that the token handler keeps for this browser: who is signed in, until when, and requests within it.
// Reading the session does not extend it; requests to targets do.

export const clientId = 'formgate-console';

export interface Session {
  id: string;
  tenantId: string;
  tenant?: { realm: string; name: string } | null;
  clientId: string;
  name: string;
  email: string | null;
  roles: string[];
  expiry: string;
  idleExpiry: string;
  absoluteExpiry: string;
  created: string;
  core: boolean;
  logoutUrl: string | null;
}

/** `ended`: a request found that the session is over. The others happened in another tab. */
export type SessionEvent = 'ended' | 'signed-out' | 'signed-in';

const events = new EventTarget();
const otherTabs = new BroadcastChannel('formgate-session');
otherTabs.addEventListener('message', ({ data }) => {
  if (data === 'signed-out' || data === 'signed-in') events.dispatchEvent(new Event(data));
});

/** Returns what ends the subscription. */
export function onSession(name: SessionEvent, listen: () => void): () => void {
  events.addEventListener(name, listen);
  return () => events.removeEventListener(name, listen);
}

export function tellOtherTabs(name: SessionEvent): void {
  otherTabs.postMessage(name);
}

/** Milliseconds by which the server's clock is ahead of this one's. */
let clockOffset = 0;

export function serverNow(): number {
  return Date.now() + clockOffset;
}

/** Resolves to undefined if nobody is signed in. Throws if the token handler cannot say. */
export async function readSession(): Promise<Session | undefined> {
  const response = await fetch('/token-handler/sessions', {
    headers: { Accept: 'application/json' },
    cache: 'no-store',
  });
  const date = Date.parse(response.headers.get('Date') ?? '');
  if (Number.isFinite(date)) clockOffset = date - Date.now();
  if (response.status === 401) return undefined;
  if (!response.ok) throw new Error(`The session cannot be read: status ${response.status}`);
  const [mine] = (await response.json()) as Session[];
  return mine?.clientId === clientId ? mine : undefined;
}

/** As `fetch`, with the CSRF header. A response of 401 ends the session in this tab. */
export async function sessionFetch(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if ((init.method ?? 'GET') !== 'GET') headers.set('X-XSRF-TOKEN', cookieValue('XSRF-TOKEN'));
  const response = await fetch(url, { ...init, headers, cache: 'no-store' });
  if (response.status === 401) events.dispatchEvent(new Event('ended'));
  return response;
}

/** Any request to a target extends the session, whatever its response. */
export async function extendSession(): Promise<Session | undefined> {
  await sessionFetch('/token-handler/targets/form-service/form/v1/definitions');
  return readSession();
}

function cookieValue(name: string): string {
  const found = document.cookie.split('; ').find((text) => text.startsWith(`${name}=`));
  return decodeURIComponent(found?.slice(name.length + 1) ?? '');
}

export interface SignInOptions {
  tenant: string;
  /** Path and query of the page to return to. */
  returnTo: string;
}

/** The address at which the browser signs in. */
export function signInUrl({ tenant, returnTo }: SignInOptions): string {
  const base = `/token-handler/clients/${clientId}`;
  const query = new URLSearchParams({ tenant, callbackUrl: `${location.origin}${base}/callback`, returnTo });
  return `${base}/auth?${query}`;
}
