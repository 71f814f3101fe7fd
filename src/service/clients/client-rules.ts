// What a client of the token handler looks like in the configuration service: shared by the token handler, which reads
// clients, and by the reconciler, which writes those of core. Pure; it says nothing of tenants and registrations.
import type { Urns } from '../urn.ts';

/** Where clients stand, of core and of each tenant. */
export const clientsNamespace = 'platform';
export const clientsName = 'token-handler';

/** Of clients and of targets: also what the configuration service takes as part of a key. */
export const clientIdPattern = /^[A-Za-z0-9 _-]{1,50}$/;

/** A client as the platform writes it. */
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
export function builderPreview(builderUrl: string, urns: Pick<Urns, 'service'>): ClientEntry {
  return {
    id: builderPreviewId,
    name: 'Builder preview',
    description: 'Previews apps in the builder, as the signed-in user.',
    redirectUris: [`${builderUrl}/token-handler/clients/${builderPreviewId}/callback`],
    targets: ['form-service', 'file-service'].map((id) => ({ id, upstream: urns.service(id) })),
    keycloakLogout: false,
  };
}

const urnPart = '[A-Za-z0-9-]{1,50}';
const servicePattern = new RegExp(`^${urnPart}$`);
const upstreamPattern = new RegExp(`^:${urnPart}:${urnPart}(?::${urnPart})?$`);

/** The URN of an upstream: a service's or an API's, never a resource's; undefined for what is none of the prefix. */
export function upstreamUrn(text: string, prefix: string): string | undefined {
  if (servicePattern.test(text)) return `${prefix}:platform:${text}`;
  return text.startsWith(prefix) && upstreamPattern.test(text.slice(prefix.length)) ? text : undefined;
}
