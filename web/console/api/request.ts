// A request to one of the services behind the token handler. The same value is sent, and shown as a curl command.

export type Target = 'form-service' | 'configuration-service' | 'token-handler';

export interface ApiRequest {
  target: Target;
  /** Path of the service's API, such as `/form/v1/forms`. Parts that come from data are encoded by `path`. */
  path: string;
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Query parameters. Undefined and empty parameters are left out. */
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** Body of the request, which is sent as JSON. */
  json?: unknown;
  /** Body of the request, which is sent as CSV. */
  csv?: string;
}

/**
 * Builds a path and encodes each part, so that data never changes which resource is addressed. Throws for the parts `.`
 * and `..`, which no encoding protects: clients remove them from the path (RFC 3986 section 5.2.4).
 */
export function path(texts: TemplateStringsArray, ...parts: (string | number)[]): string {
  const dots = parts.find((part) => part === '.' || part === '..');
  if (dots !== undefined) throw new Error(`"${dots}" cannot be a part of a path`);
  return texts.reduce((whole, text, index) => whole + encodeURIComponent(parts[index - 1] ?? '') + text);
}

/** Returns the path and the query of a request. */
export function addressOf({ path: written, query = {} }: ApiRequest): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value));
  return search.size === 0 ? written : `${written}?${search}`;
}

export function bodyOf({ json, csv }: ApiRequest): { type: string; text: string } | undefined {
  if (csv !== undefined) return { type: 'text/csv', text: csv };
  return json === undefined ? undefined : { type: 'application/json', text: JSON.stringify(json) };
}
