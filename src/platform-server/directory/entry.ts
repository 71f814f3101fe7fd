// What the directory knows: the URL of each service and of each of its APIs. Entries come from the seed.

export interface Entry {
  namespace: string;
  /** `event-service`, or `event-service:v1` for an API. */
  service: string;
  url: string;
}

export interface ShownEntry extends Entry {
  urn: string;
}

/** The namespace of the platform itself, which has a directory though no tenant has its name. */
export const platformNamespace = 'platform';

export function showEntry(urnPrefix: string, { namespace, service, url }: Entry): ShownEntry {
  return { namespace, service, url, urn: `${urnPrefix}:${namespace}:${service}` };
}

/** URLs are stored without a trailing slash: clients resolve relative to the last segment. */
export function normalizeUrl(url: string): string {
  return url.replace(/\/+$/, '');
}
