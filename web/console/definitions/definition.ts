// Form definitions in the configuration service. A definition is either a separate document, or a member of the
// tenant's collection, a document that contains definitions keyed by id.
import { isObject } from '../../apply/model/json.ts';
import { type ApiRequest, path } from '../api/request.ts';

export type Definition = Record<string, unknown>;

export interface Revision {
  revision: number;
  created: string;
  lastUpdated: string;
  configuration: unknown;
}

export interface ConfigurationDocument {
  latest: Revision | null;
  active: Revision | null;
}

export type Source = 'collection' | 'document';

/** A definition, and where it is stored. */
export interface Located {
  id: string;
  source: Source;
  definition: Definition;
  latest: number;
  /** The revision that forms use; undefined if they use the latest. */
  active: number | undefined;
}

const target = 'configuration-service' as const;
const root = '/configuration/v2/configuration';

export function documentRequest(id: string, source: Source): ApiRequest {
  return { target, path: source === 'collection' ? `${root}/platform/form-service` : root + path`/form-service/${id}` };
}

/** `after` is `page.next` of the previous page. */
export function revisionsRequest(id: string, source: Source, after?: string): ApiRequest {
  const { path: document } = documentRequest(id, source);
  return { target, path: `${document}/revisions`, query: { top: 20, after } };
}

export function operationRequest(id: string, source: Source, json: object): ApiRequest {
  return { ...documentRequest(id, source), method: 'POST', json };
}

export const checkRequest = (definition: Definition): ApiRequest => ({
  target: 'form-service',
  path: '/form/v1/definitions/check',
  method: 'POST',
  json: definition,
});

/** The definition within the value of its document. */
export function definitionIn(configuration: unknown, id: string, source: Source): Definition | undefined {
  const value = source === 'collection' ? asObject(configuration)?.[id] : configuration;
  return asObject(value);
}

export function asObject(value: unknown): Record<string, unknown> | undefined {
  return isObject(value) ? value : undefined;
}

/**
 * Returns the requests that store a definition, in order. In the collection, an update merges members. Members that the
 * definition no longer has are therefore removed one by one.
 */
export function saveRequests(id: string, source: Source, next: Definition, former: Definition): ApiRequest[] {
  const document = documentRequest(id, source);
  const patch = (json: object): ApiRequest => ({ ...document, method: 'PATCH', json });
  if (source === 'document') return [patch({ operation: 'REPLACE', configuration: next })];
  const removed = Object.keys(former).filter((name) => !Object.hasOwn(next, name));
  return [
    patch({ operation: 'UPDATE', update: { [id]: next } }),
    ...removed.map((name) => patch({ operation: 'DELETE', property: `${id}.${name}` })),
  ];
}

export function deleteRequest(id: string, source: Source): ApiRequest {
  const document = documentRequest(id, source);
  if (source === 'document') return { ...document, method: 'DELETE' };
  return { ...document, method: 'PATCH', json: { operation: 'DELETE', property: id } };
}
