// Who may use the notification service. The contract answers 401 where creating, subscribing or unsubscribing is
// refused, and 403 elsewhere.
import { anyRole } from '../../service/auth/bearer-guards.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';

const [app, admin] = ['subscription-app', 'subscription-admin'];

/** Reads and operations on one subscriber. */
export const mayUseSubscribers: Guard = anyRole(app, admin);

/** Lists, and reading one subscription. */
export const mayListSubscriptions: Guard = anyRole(admin);

/** Creating, subscribing, unsubscribing. */
export const maySubscribe: Guard = {
  name: `anyRole(${app}, ${admin}), else 401`,
  check(_request, response) {
    const { roles } = callerOf(response);
    if (roles.has(app) || roles.has(admin)) return;
    throw new Problem('unauthenticated', `This operation requires the role ${app} or ${admin}.`, {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
  },
};
