// A client for the part of Keycloak's admin REST API that the command `keycloak-setup` needs.
import { codeOfCause } from '../../service/error-code.ts';

/** Says why Keycloak could not be set up. The message is printed for the operator in one line, without a stack. */
export class SetupError extends Error {}

export interface AdminApi {
  /** Returns the parsed body, or undefined for 404. `path` begins below `/admin/realms`. */
  read<T>(path: string): Promise<T | undefined>;
  write<T = undefined>(method: 'POST' | 'PUT', path: string, body: unknown): Promise<T>;
}

export interface Administrator {
  /** Keycloak's base URL. */
  url: string;
  user: string;
  password: string;
}

/** Milliseconds for which an access token is reused. Access tokens of the realm `master` expire after a minute. */
const tokenAge = 30_000;

/** The methods throw SetupError if Keycloak cannot be reached or responds with an error. */
export function createAdminApi(administrator: Administrator): AdminApi {
  let token: { value: string; at: number } | undefined;

  async function request(method: string, path: string, body?: unknown): Promise<AdminResponse> {
    if (!token || performance.now() - token.at > tokenAge)
      token = { value: await signIn(administrator), at: performance.now() };
    return send(`${administrator.url}/admin/realms${path}`, {
      method,
      headers: { Authorization: `Bearer ${token.value}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  return {
    async read<T>(path: string) {
      const response = await request('GET', path);
      return response.status === 404 ? undefined : parse<T>(response, `reading ${pathOf(path)}`);
    },
    async write<T>(method: 'POST' | 'PUT', path: string, body: unknown) {
      return parse<T>(await request(method, path, body), `writing ${pathOf(path)}`);
    },
  };
}

async function signIn({ url, user, password }: Administrator): Promise<string> {
  const form = { grant_type: 'password', client_id: 'admin-cli', username: user, password };
  const response = await send(`${url}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  // Keycloak responds to a wrong password with 400 (RFC 6749 section 5.2), but has also been seen to respond with 401.
  if ([400, 401].includes(response.status)) throw new SetupError(`Keycloak refuses the password of ${user}`);
  const token = parse<{ access_token?: unknown } | null | undefined>(response, 'signing in')?.access_token;
  if (typeof token !== 'string') throw notKeycloak(response, 'signing in');
  return token;
}

/** A complete response. */
interface AdminResponse {
  origin: string;
  status: number;
  text: string;
}

/** Never follows a redirect, because a redirect could send the password to another address. */
async function send(url: string, init: RequestInit): Promise<AdminResponse> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(30_000) });
    return { origin: new URL(url).origin, status: response.status, text: await response.text() };
  } catch (error) {
    const reason = codeOfCause(error) ?? (error as Error).name;
    throw new SetupError(`${new URL(url).origin} cannot be reached (${reason})`, { cause: error });
  }
}

/**
 * Reports only the status of a failed call, because Keycloak's message may quote the request, which contains secrets.
 */
function parse<T>(response: AdminResponse, what: string): T {
  const { status, text } = response;
  if (status < 200 || status > 299) throw new SetupError(`Keycloak responded with ${status} to ${what}`);
  try {
    return (text === '' ? undefined : JSON.parse(text)) as T;
  } catch {
    // The error has no cause, because the parser's message quotes the response.
    throw notKeycloak(response, what);
  }
}

/** The base URL may lead to the web page of a proxy, or lack Keycloak's path. */
function notKeycloak({ origin }: AdminResponse, what: string): SetupError {
  return new SetupError(`${origin} does not respond like Keycloak to ${what}; check --url`);
}

function pathOf(path: string): string {
  return path.split('?')[0] ?? '';
}
