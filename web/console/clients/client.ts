// Clients as the token handler lists them, and as the tenant configures them.
import type { ApiProblem } from '../api/problem.ts';
import { type ApiRequest, path } from '../api/request.ts';

export interface Client {
  id: string;
  name: string;
  description: string | null;
  redirectUris: string[];
  targets: { id: string; upstream: string }[];
  keycloakLogout: boolean;
  core: boolean;
  registered: boolean;
  registration: Registration | null;
}

export interface Registration {
  clientId: string;
  registeredAt: string;
  redirectUris: string[];
  management: 'kept' | 'lost' | 'unsupported' | 'provided';
}

export interface Leftover {
  clientName: string;
  clientId: string | null;
  realm: string;
  reason: string;
  created: string;
}

const target = 'token-handler' as const;
const root = '/token-handler/v1/clients';

export const listRequest = (core: boolean): ApiRequest => ({ target, path: root, query: { core: core || undefined } });

export const registerRequest = (id: string, json: object): ApiRequest => ({
  target,
  path: path`/token-handler/v1/clients/${id}`,
  method: 'POST',
  json,
});

export const redirectUrisRequest = (id: string, redirectUris: string[]): ApiRequest => ({
  target,
  path: path`/token-handler/v1/clients/${id}`,
  method: 'PUT',
  json: { redirectUris },
});

export const leftoversRequest = (id: string): ApiRequest => ({
  target,
  path: path`/token-handler/v1/clients/${id}/leftovers`,
});

const document = '/configuration/v2/configuration/platform/token-handler';

/** Reads the tenant's own document, which contains the tenant's clients, keyed by id. */
export const documentRequest: ApiRequest = { target: 'configuration-service', path: document };

export type ClientEntry = Record<string, unknown>;

export interface ClientDocument {
  /** A client may be in `clients` or, in an older format, at the top level. */
  latest?: { configuration?: { clients?: Record<string, ClientEntry> } & Record<string, unknown> } | null;
}

/** Replaces one client of the document and keeps the others. */
export function saveRequest(id: string, entry: ClientEntry): ApiRequest {
  const json = { operation: 'UPDATE', update: { clients: { [id]: entry } } };
  return { ...documentRequest, method: 'PATCH', json };
}

/** The members of a client that a person edits, as texts. */
export interface ClientTexts {
  id: string;
  name: string;
  description: string;
  /** The redirect URIs, one per line. */
  redirectUris: string;
  /** The targets, one per line: the id, a space, and the URN of the upstream. */
  targets: string;
  keycloakLogout: boolean;
}

export const noClient: ClientTexts = {
  id: '',
  name: '',
  description: '',
  redirectUris: '',
  targets: '',
  keycloakLogout: false,
};

export function textsOf({ id, name, description, redirectUris, targets, keycloakLogout }: Client): ClientTexts {
  return {
    id,
    name,
    description: description ?? '',
    redirectUris: redirectUris.join('\n'),
    targets: targets.map((one) => `${one.id} ${one.upstream}`).join('\n'),
    keycloakLogout,
  };
}

export const linesOf = (text: string): string[] => text.split('\n').flatMap((line) => line.trim() || []);

/**
 * Returns what is wrong with redirect URIs, one per line, as far as a page can know it: which hosts and wildcards are
 * allowed depends on the settings of the token handler.
 */
export function redirectUrisProblem(text: string): string | undefined {
  const uris = linesOf(text);
  const [found] = uris.flatMap((uri) => {
    const problem = redirectUriProblem(uri);
    return problem === undefined ? [] : [`${uri} ${problem}`];
  });
  return uris.length === 0 ? 'Enter at least one redirect URI' : found;
}

function redirectUriProblem(uri: string): string | undefined {
  if (!/^https?:\/\/[^/?#\\\s]/i.test(uri) || !URL.canParse(uri)) return 'must be an absolute http or https URL';
  if (uri.includes('#')) return 'must not have a fragment';
  const { username, password } = new URL(uri);
  return username === '' && password === '' ? undefined : 'must not contain credentials';
}

/** Returns the token handler's problem with redirect URIs; undefined if the request failed for another reason. */
export function refusedRedirectUris({ errors }: ApiProblem, uris: readonly string[]): string | undefined {
  const found = errors.find(({ pointer }) => pointer.startsWith('/redirectUris'));
  const uri = uris[Number(found?.pointer.split('/')[2] ?? Number.NaN)];
  return found && `${uri ?? 'The redirect URIs'} ${found.detail}`;
}

/**
 * Converts the texts into an entry of the configuration. Keeps the members of `former` that have no field. Also keeps
 * the targets of `former` if the person has not edited them, because they may be in an older format.
 */
export function entryOf(texts: ClientTexts, former: ClientEntry = {}): ClientEntry {
  const { id, name, description, keycloakLogout } = texts;
  const isSame = former.targets !== undefined && texts.targets === textsOf(configuredClient(id, former)).targets;
  const targets = linesOf(texts.targets).map((line) => {
    const [targetId = '', upstream = ''] = line.split(/\s+/);
    return { id: targetId, upstream };
  });
  return {
    ...{ ...former, id, name, description, keycloakLogout },
    redirectUris: linesOf(texts.redirectUris),
    targets: isSame ? former.targets : targets,
  };
}

/** Converts an entry of the tenant's configuration into a client that is not registered. */
export function configuredClient(id: string, entry: ClientEntry): Client {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  return {
    id,
    name: textOf(entry.name) || id,
    description: textOf(entry.description),
    redirectUris: list(entry.redirectUris).map(String),
    targets: targetsOf(entry.targets),
    keycloakLogout: entry.keycloakLogout === true,
    core: false,
    registered: false,
    registration: null,
  };
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '');

/**
 * Reads targets in every format that the token handler accepts: as a list or keyed by their ids. A target may be only
 * the name of a service.
 */
function targetsOf(targets: unknown): Client['targets'] {
  const isList = Array.isArray(targets);
  return Object.entries(Object(targets)).map(([key, target]: [string, unknown]) => {
    if (typeof target === 'string') return { id: isList ? target : key, upstream: target };
    const { id = isList ? '' : key, upstream } = Object(target);
    return { id: textOf(id), upstream: textOf(upstream) };
  });
}
