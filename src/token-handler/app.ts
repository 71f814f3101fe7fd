// The token handler's route table. Every route of the API answers under /token-handler/v1 and, for frontends whose proxy
// does not rewrite, under /token-handler.
import type { Route } from '../service/http/http-app.ts';
import { type AboutOptions, aboutRoutes } from '../service/openapi/about-routes.ts';
import { documentRoutes } from '../service/openapi/openapi.ts';
import { type ClientRouteOptions, listClientsRoute, registerClientRoute, updateClientRoute } from './clients/routes.ts';
import { backchannelRoute, type LogoutParts, logoutRoute } from './logout/routes.ts';
import { deleteSessionRoute, listSessionsRoute, type SessionRouteOptions } from './sessions/routes.ts';
import { authRoute, callbackRoute, type SignInParts } from './sign-in/routes.ts';

export interface TokenHandlerRoutesOptions {
  about: Pick<AboutOptions, 'checks' | 'clock'>;
  clients: ClientRouteOptions;
  signIn: SignInParts;
  logout: LogoutParts;
  sessions: SessionRouteOptions;
  targets: Route[];
}

const name = 'Token handler';
const description = 'Signs users of light frontends in, keeps their tokens in sessions, and relays their requests.';
const root = '/token-handler/v1';

export function tokenHandlerRoutes(options: TokenHandlerRoutesOptions): Route[] {
  const { about, clients, signIn, logout, sessions, targets } = options;
  const api = [
    listClientsRoute(clients),
    registerClientRoute(clients),
    updateClientRoute(clients),
    authRoute(signIn),
    callbackRoute(signIn),
    logoutRoute(logout),
    backchannelRoute(logout),
    listSessionsRoute(sessions),
    deleteSessionRoute(sessions),
    ...targets,
  ];
  const routes = [...aboutRoutes({ ...about, name, description, api: root }), ...api];
  return [
    ...routes,
    ...api.map((route) => ({ ...route, path: route.path.replace(root, '/token-handler') })),
    ...documentRoutes({ title: name, version: '1', description, routes }),
  ];
}
