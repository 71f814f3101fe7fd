// Creates the objects of one realm in Keycloak. Each method adds what is missing. Existing objects stay as they are,
// with one exception: a client may be made confidential and get a service account.
import type { AdminApi } from './admin-api.ts';

/** Names of roles, keyed by the id of the client that defines the roles. */
export type ClientRoles = Readonly<Record<string, readonly string[]>>;

interface Client {
  id: string;
  clientId: string;
  serviceAccountsEnabled?: boolean;
}

interface Named {
  id: string;
  name: string;
}

interface Person {
  email: string;
  password: string;
  isTemporary: boolean;
}

/** A realm in Keycloak that Formgate uses. */
export class Realm {
  readonly #api: AdminApi;
  readonly #name: string;
  readonly #created: (what: string) => void;

  /** `created` is called once for each object that was missing. */
  constructor(api: AdminApi, name: string, created: (what: string) => void) {
    this.#api = api;
    this.#name = name;
    this.#created = created;
  }

  async ensure(): Promise<void> {
    if (await this.#api.read(this.#path)) return;
    // With these settings, Keycloak refuses the second use of a refresh token, because a second use is a sign of theft
    // (RFC 9700 section 4.14.2).
    const settings = { revokeRefreshToken: true, refreshTokenMaxReuse: 0 };
    await this.#api.write('POST', '', { realm: this.#name, enabled: true, ...settings });
    this.#created('the realm');
  }

  /** Ensures that the clients and roles in `defined` exist. These clients only define roles, and cannot sign in. */
  async roleClients(defined: ClientRoles): Promise<void> {
    for (const [clientId, names] of Object.entries(defined)) await this.#roles(await this.#client(clientId, {}), names);
  }

  /**
   * Ensures that a confidential client exists, and that its service account has the roles in `granted`. Returns the
   * client's secret.
   */
  async serviceAccount(clientId: string, granted: ClientRoles): Promise<string> {
    const account = { serviceAccountsEnabled: true, publicClient: false };
    const present = await this.#client(clientId, account);
    const path = `${this.#path}/clients/${present.id}`;
    if (!present.serviceAccountsEnabled) await this.#api.write('PUT', path, { ...present, ...account });
    const user = await this.#api.read<{ id: string }>(`${path}/service-account-user`);
    await this.#grant(user?.id ?? '', `the account ${clientId}`, granted);
    const secret = await this.#api.read<{ value?: string }>(`${path}/client-secret`);
    if (secret?.value !== undefined) return secret.value;
    return (await this.#api.write<{ value: string }>('POST', `${path}/client-secret`, {})).value;
  }

  /**
   * Creates a person if the person does not exist, and grants the roles. A temporary password must be changed at the
   * first sign-in. Calls `beforeCreation` before Keycloak gets the password, so that the caller can store the password
   * even if the response is lost.
   */
  async person(
    { email, password, isTemporary }: Person,
    granted: ClientRoles,
    beforeCreation: () => void,
  ): Promise<void> {
    const query = { username: email, exact: 'true' };
    const present = await this.#find<{ id: string }>('users', query);
    if (!present) {
      beforeCreation();
      // If a name were missing, Keycloak would ask the person for that name at the first sign-in.
      const names = { firstName: 'Formgate', lastName: isTemporary ? 'Administrator' : 'Tester' };
      const credentials = [{ type: 'password', value: password, temporary: isTemporary }];
      const user = { username: email, email, emailVerified: true, enabled: true, ...names, credentials };
      await this.#api.write('POST', `${this.#path}/users`, user);
      this.#created(`the person ${email}`);
    }
    const user = present ?? (await this.#find<{ id: string }>('users', query));
    await this.#grant(user?.id ?? '', email, granted);
  }

  /**
   * Makes the services an audience of every token of each client that is created later, even if the token's user has no
   * role in these services (docs/keycloak.md).
   */
  async audiences(scope: string, services: readonly string[]): Promise<void> {
    const scopes = async () => (await this.#api.read<Named[]>(`${this.#path}/client-scopes`)) ?? [];
    const isNamed = (one: Named) => one.name === scope;
    if (!(await scopes()).some(isNamed)) {
      await this.#api.write('POST', `${this.#path}/client-scopes`, audienceScope(scope, services));
      this.#created(`the client scope ${scope}`);
    }
    const defaults = `${this.#path}/default-default-client-scopes`;
    if (((await this.#api.read<Named[]>(defaults)) ?? []).some(isNamed)) return;
    const id = (await scopes()).find(isNamed)?.id ?? '';
    await this.#api.write('PUT', `${defaults}/${id}`, {});
    this.#created(`the default client scope ${scope}`);
  }

  /** Returns an initial access token that can register `count` clients within a day. */
  async registrationToken(count: number): Promise<string> {
    const body = { count, expiration: 86_400 };
    return (await this.#api.write<{ token: string }>('POST', `${this.#path}/clients-initial-access`, body)).token;
  }

  get #path(): string {
    return `/${encodeURIComponent(this.#name)}`;
  }

  async #find<T>(what: string, query: Record<string, string>): Promise<T | undefined> {
    return (await this.#api.read<T[]>(`${this.#path}/${what}?${new URLSearchParams(query)}`))?.[0];
  }

  async #client(clientId: string, settings: object): Promise<Client> {
    const present = await this.#find<Client>('clients', { clientId });
    if (present) return present;
    await this.#api.write('POST', `${this.#path}/clients`, { clientId, enabled: true, ...noFlows, ...settings });
    this.#created(`the client ${clientId}`);
    return (await this.#find<Client>('clients', { clientId })) as Client;
  }

  /** Returns the client's roles with these names, and creates those that are missing. */
  async #roles({ id, clientId }: Client, names: readonly string[]): Promise<Named[]> {
    const path = `${this.#path}/clients/${id}/roles`;
    const all = async () => (await this.#api.read<Named[]>(path)) ?? [];
    const present = new Set((await all()).map(({ name }) => name));
    for (const name of names.filter((one) => !present.has(one))) {
      await this.#api.write('POST', path, { name });
      this.#created(`the role ${name} of ${clientId}`);
    }
    return (await all()).filter(({ name }) => names.includes(name));
  }

  async #grant(userId: string, whose: string, granted: ClientRoles): Promise<void> {
    for (const [clientId, names] of Object.entries(granted)) {
      const holder = await this.#client(clientId, {});
      const path = `${this.#path}/users/${userId}/role-mappings/clients/${holder.id}`;
      const present = new Set(((await this.#api.read<Named[]>(path)) ?? []).map(({ name }) => name));
      const missing = (await this.#roles(holder, names)).filter(({ name }) => !present.has(name));
      if (missing.length === 0) continue;
      await this.#api.write('POST', path, missing);
      this.#created(`${missing.map(({ name }) => name).join(' and ')} of ${clientId} for ${whose}`);
    }
  }
}

const noFlows = { standardFlowEnabled: false, directAccessGrantsEnabled: false, serviceAccountsEnabled: false };

function audienceScope(name: string, services: readonly string[]): object {
  return {
    name,
    protocol: 'openid-connect',
    attributes: { 'include.in.token.scope': 'false' },
    protocolMappers: services.map((service) => ({
      name: `audience ${service}`,
      protocol: 'openid-connect',
      protocolMapper: 'oidc-audience-mapper',
      config: { 'included.custom.audience': service, 'access.token.claim': 'true', 'id.token.claim': 'false' },
    })),
  };
}
