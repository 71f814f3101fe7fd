// A client for the part of Keycloak's admin REST API that tests need. A failed call throws an error with the response,
// because a test must not continue with an incomplete realm.
export interface KeycloakServer {
  /** Base URL, without `/realms` and `/admin`: `http://127.0.0.1:8180/auth`. */
  url: string;
  username: string;
  password: string;
}

export interface AdminApi {
  /** Sends a request below `/admin/realms`. Returns the parsed body; undefined if there is none. */
  call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<unknown>;
  /** Like `call`, but returns undefined for 404. */
  find(path: string): Promise<unknown>;
}

/** Seconds for which a token is reused; Keycloak's tokens are valid for 60 s. */
const tokenLifetime = 30;

export function createAdminApi(server: KeycloakServer): AdminApi {
  let token: { value: Promise<string>; until: number } | undefined;

  function bearer(): Promise<string> {
    if (!token || token.until < Date.now()) token = { value: login(server), until: Date.now() + tokenLifetime * 1_000 };
    return token.value;
  }

  async function request(method: string, path: string, body?: unknown): Promise<Response> {
    return fetch(`${server.url}/admin/realms${path}`, {
      method,
      headers: { Authorization: `Bearer ${await bearer()}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  async function read(response: Response, what: string): Promise<unknown> {
    const text = await response.text();
    if (!response.ok) throw new Error(`Keycloak returned ${response.status} to ${what}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  return {
    call: async (method, path, body) => read(await request(method, path, body), `${method} ${path}`),
    find: async (path) => {
      const response = await request('GET', path);
      return response.status === 404 ? undefined : read(response, `GET ${path}`);
    },
  };
}

async function login({ url, username, password }: KeycloakServer): Promise<string> {
  const form = { grant_type: 'password', client_id: 'admin-cli', username, password };
  return requestToken(`${url}/realms/master`, form);
}

/** Requests an access token from a realm, with any grant. */
export async function requestToken(issuer: string, form: Record<string, string>): Promise<string> {
  const response = await fetch(`${issuer}/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  const { access_token: token, ...rest }: { access_token?: string } = JSON.parse(await response.text());
  if (token === undefined) throw new Error(`Keycloak returned ${response.status}: ${JSON.stringify(rest)}`);
  return token;
}
