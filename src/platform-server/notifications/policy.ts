// Who may use the notification service. The contract demands 401 for a refused create, subscribe or unsubscribe, and 403
// for everything else.
import { role } from '../../service/auth/bearer-guards.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';

const [app, admin] = ['subscription-app', 'subscription-admin'];

/** Reads and operations on one subscriber. */
export const mayUseSubscribers: Guard = role(app, admin);

/** Lists, and reading one subscription. */
export const mayListSubscriptions: Guard = role(admin);

/** Creating, subscribing, unsubscribing. */
export const maySubscribe: Guard = {
  name: `roleOr401(${app}, ${admin})`,
  check(_request, response) {
    const { roles } = callerOf(response);
    if (roles.has(app) || roles.has(admin)) return;
    throw new Problem('unauthenticated', `This operation requires the role ${app} or ${admin}.`, {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
  },
};
