// Finds the entries of a configuration document that lists clients, without validating them. The token handler reads
// the clients from these entries. The reconciler compares the ids in tenants' documents with those of core clients.
import { isObject } from '../json-value.ts';

/**
 * Returns the entries, keyed by id: the members of the property `clients`, and the top-level members. An entry in
 * `clients` overrides a top-level entry with the same id.
 */
export function clientEntries(document: unknown): Map<string, unknown> {
  const top = new Map(Object.entries(isObject(document) ? document : {}));
  const grouped = top.get('clients');
  top.delete('clients');
  return new Map([...top, ...Object.entries(isObject(grouped) ? grouped : {})]);
}
