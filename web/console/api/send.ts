// Sends requests through the token handler, which adds the access token. The page itself never has an access token.
import { tokenHandler } from '../session/session.ts';
import { ApiProblem, asProblem, problemOf } from './problem.ts';
import { type ApiRequest, addressOf, bodyOf } from './request.ts';

/** Sends a request. Resolves to undefined for a response without a body. Throws ApiProblem. */
export async function send<T>(request: ApiRequest): Promise<T> {
  const body = bodyOf(request);
  const headers = { ...request.headers, ...(body && { 'Content-Type': body.type }) };
  const init = {
    cache: 'no-store',
    method: request.method ?? 'GET',
    headers,
    ...(body && { body: body.text }),
  } as const;
  try {
    const response = await tokenHandler().fetch(`/token-handler/targets/${request.target}${addressOf(request)}`, init);
    if (!response.ok) throw await problemOf(response);
    const text = await response.text();
    const isJson = /\bjson\b/.test(response.headers.get('Content-Type') ?? '');
    return (isJson && text !== '' ? JSON.parse(text) : text || undefined) as T;
  } catch (error) {
    throw asProblem(error);
  }
}

/** Like `send`, but resolves to undefined if the resource does not exist. */
export async function sendOptional<T>(request: ApiRequest): Promise<T | undefined> {
  return send<T>(request).catch((error: unknown) => {
    if (error instanceof ApiProblem && error.status === 404) return undefined;
    throw error;
  });
}
