// Decides which callers may use the notification service. The contract requires 401 if the refused call would create a
// subscriber, subscribe or unsubscribe. It requires 403 for every other refusal.
import { role } from '../../service/auth/bearer-guards.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';

const [app, admin] = ['subscription-app', 'subscription-admin'];

/** For reading one subscriber, and for operations on it. */
export const mayUseSubscribers: Guard = role(app, admin);

/** For lists, and for reading one subscription. */
export const mayListSubscriptions: Guard = role(admin);

/** For creating a subscriber, subscribing and unsubscribing. */
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
