// Finds the entries of a configuration document that lists clients, without validating them. The token handler reads
// clients from the entries, and the reconciler compares the ids of tenants' entries with those of core clients.
import { isObject } from '../json-value.ts';

/** Returns the entries of the property `clients`, and the top-level entries whose ids `clients` does not contain. */
export function clientEntries(document: unknown): Map<string, unknown> {
  const top = new Map(Object.entries(isObject(document) ? document : {}));
  const grouped = top.get('clients');
  top.delete('clients');
  return new Map([...top, ...Object.entries(isObject(grouped) ? grouped : {})]);
}
