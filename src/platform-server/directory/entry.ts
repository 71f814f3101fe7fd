// Entries of the directory: the URL of each service and of each of its APIs. The entries come from the seed.

export interface Entry {
  namespace: string;
  /** The name of a service, such as `event-service`, or of its API, such as `event-service:v1`. */
  service: string;
  url: string;
}

export interface ShownEntry extends Entry {
  urn: string;
}

/** The namespace of the platform's own services. The directory contains this namespace although it is not a tenant. */
export const platformNamespace = 'platform';

export function showEntry(urnPrefix: string, { namespace, service, url }: Entry): ShownEntry {
  return { namespace, service, url, urn: `${urnPrefix}:${namespace}:${service}` };
}
