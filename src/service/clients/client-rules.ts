// Rules for clients of the token handler in the configuration service. The token handler reads the clients, and the
// reconciler writes the core clients.
import { z } from 'zod';
import type { Urns } from '../urn.ts';

/**
 * Namespace and name of the configuration document that lists clients. The core and each tenant have such a document.
 */
export const clientsNamespace = 'platform';
export const clientsName = 'token-handler';

/** The id of a client or target. The configuration service accepts the same characters in keys. */
export const clientIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9 _-]{1,50}$/, 'must be 1 to 50 letters, digits, spaces, hyphens and underscores');

export interface ClientEntry {
  id: string;
  name: string;
  description?: string;
  redirectUris: string[];
  targets: { id: string; upstream: string }[];
  keycloakLogout: boolean;
}

export const builderPreviewId = 'builder-preview';

/** The core client of the builder at `builderUrl`, which has no trailing slash. */
function builderPreview(builderUrl: string, urns: Pick<Urns, 'service'>): ClientEntry {
  return {
    id: builderPreviewId,
    name: 'Builder preview',
    description: 'Previews apps in the builder, as the signed-in user.',
    redirectUris: [`${builderUrl}/token-handler/clients/${builderPreviewId}/callback`],
    targets: ['form-service', 'file-service'].map((id) => ({ id, upstream: urns.service(id) })),
    keycloakLogout: false,
  };
}

export const consoleId = 'formgate-console';

/**
 * The core client of the console at `url`, which has no trailing slash. The console may call all services that an
 * administrator works with. Each service checks the roles of the signed-in person.
 */
function consoleClient(url: string, urns: Pick<Urns, 'service'>): ClientEntry {
  const services = ['form-service', 'configuration-service', 'token-handler'];
  return {
    id: consoleId,
    name: 'Formgate console',
    description: 'Forms, definitions, registers, clients, sessions and operations, for administrators.',
    redirectUris: [`${url}/token-handler/clients/${consoleId}/callback`],
    targets: services.map((id) => ({ id, upstream: urns.service(id) })),
    keycloakLogout: false,
  };
}

/**
 * Public URLs of the applications, without a trailing slash. A URL is undefined if the installation does not have the
 * application.
 */
export interface ApplicationUrls {
  BUILDER_APP_URL?: string | undefined;
  CONSOLE_URL?: string | undefined;
}

/** The core clients that Formgate itself maintains. */
export function maintainedClients(urls: ApplicationUrls, urns: Pick<Urns, 'service'>): ClientEntry[] {
  const { BUILDER_APP_URL: builder, CONSOLE_URL: console } = urls;
  return [
    ...(builder === undefined ? [] : [builderPreview(builder, urns)]),
    ...(console === undefined ? [] : [consoleClient(console, urns)]),
  ];
}

const urnElement = '[A-Za-z0-9-]{1,50}';
const servicePattern = new RegExp(`^${urnElement}$`);
const upstreamPattern = new RegExp(`^:${urnElement}:${urnElement}(?::${urnElement})?$`);

/**
 * Returns the URN of a service or an API. `text` is either the URN itself or the name of a platform service. Returns
 * undefined for any other text.
 */
export function upstreamUrn(text: string, prefix: string): string | undefined {
  if (servicePattern.test(text)) return `${prefix}:platform:${text}`;
  return text.startsWith(prefix) && upstreamPattern.test(text.slice(prefix.length)) ? text : undefined;
}
