// Sends requests through the token handler, which adds the access token. The page never has one.
import { tokenHandler } from '../session/session.ts';
import { chosenTenant } from '../session/tenant.ts';
import { ApiProblem, asProblem, problemOf } from './problem.ts';
import { type ApiRequest, addressOf, bodyOf } from './request.ts';

export interface ApiAnswer<T> {
  body: T;
  etag: string | null;
}

/** Throws ApiProblem. A response without a body has the body undefined. */
export async function sendFor<T>(request: ApiRequest): Promise<ApiAnswer<T>> {
  const body = bodyOf(request);
  const headers = { ...request.headers, ...(body && { 'Content-Type': body.type }) };
  const init: RequestInit = {
    cache: 'no-store',
    method: request.method ?? 'GET',
    headers,
    ...(body && { body: body.text }),
  };
  const address = `/token-handler/targets/${request.target}${addressOf(request, chosenTenant())}`;
  try {
    const response = await tokenHandler().fetch(address, init);
    if (!response.ok) throw await problemOf(response);
    const text = await response.text();
    const isJson = /\bjson\b/.test(response.headers.get('Content-Type') ?? '');
    return {
      body: (isJson && text !== '' ? JSON.parse(text) : text || undefined) as T,
      etag: response.headers.get('ETag'),
    };
  } catch (error) {
    throw asProblem(error);
  }
}

export async function send<T>(request: ApiRequest): Promise<T> {
  return (await sendFor<T>(request)).body;
}

/** Undefined if the resource does not exist. */
export async function sendOptional<T>(request: ApiRequest): Promise<T | undefined> {
  return send<T>(request).catch((error: unknown) => {
    if (error instanceof ApiProblem && error.status === 404) return undefined;
    throw error;
  });
}
