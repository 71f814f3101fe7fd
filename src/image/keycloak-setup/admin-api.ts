// A client for the part of Keycloak's admin REST API that the command `keycloak-setup` needs.

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

  async function request(method: string, path: string, body?: unknown): Promise<Response> {
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
  const { access_token: token } = await parse<{ access_token: string }>(response, 'signing in');
  return token;
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) });
  } catch (error) {
    const { cause } = error as Error & { cause?: { code?: string } };
    throw new SetupError(`${new URL(url).origin} cannot be reached (${cause?.code ?? (error as Error).name})`, {
      cause: error,
    });
  }
}

/**
 * Reports only the status of a failed call, because Keycloak's message may quote the request, which contains secrets.
 */
async function parse<T>(response: Response, what: string): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new SetupError(`Keycloak responded with ${response.status} to ${what}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function pathOf(path: string): string {
  return path.split('?')[0] ?? '';
}
