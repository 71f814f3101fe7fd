// Derives from a route's guards and inputs what its operation in the OpenAPI document requires, and how it can fail.
import type { Credential, ResponseDescription, Route } from '../http/http-app.ts';

export const bodyTypeOf = ({ bodyType = 'application/json' }: Route) => bodyType;

/**
 * Returns the responses that follow from a route's guards and inputs. Responses that the route declares take
 * precedence.
 */
export function impliedResponses(route: Route): Record<number, ResponseDescription> {
  const { handle, params, query, body, streamedBody } = route;
  if (!handle) return {};
  const credentials = credentialsOf(route);
  return {
    // An unexpected failure is declared as 500, because generated clients treat `default` as a kind of success.
    500: { description: 'An unexpected failure' },
    ...((params ?? query ?? body) && {
      400: { description: 'The request is invalid: `errors` lists the invalid fields' },
    }),
    ...(credentials.length > 0 &&
      !credentials.includes('none') && {
        401: {
          description: 'The caller is not authenticated',
          ...(credentials.includes('bearer') && {
            headers: { 'WWW-Authenticate': 'Why the bearer token was rejected' },
          }),
        },
      }),
    ...(route.guards.some(({ name }) => /^not(?:Embedded|Prefetched)$/.test(name)) && {
      403: { description: 'A page of another site caused the request, or the browser sent it in advance' },
    }),
    ...(credentials.includes('bearer') && {
      502: { description: 'A service that this one depends on failed' },
      503: {
        description: 'The service, or a store that it needs, is busy or unavailable',
        headers: { 'Retry-After': 'Seconds' },
      },
      504: { description: 'A service that this one depends on did not respond in time' },
    }),
    ...(route.guards.some(({ name }) => /\b\w*Limit\(/.test(name)) && {
      429: { description: 'Too many requests', headers: { 'Retry-After': 'Seconds' } },
    }),
    ...((body ?? streamedBody) && {
      408: { description: 'The body arrives too slowly' },
      413: { description: 'The body is too large' },
      415: {
        description: `${body ? `The body is not \`${bodyTypeOf(route)}\`, or its` : 'The'} coding is not supported`,
      },
    }),
  };
}

export function credentialsOf({ guards }: Route): readonly Credential[] {
  return [...new Set(guards.flatMap(({ admits = [] }) => admits))];
}
