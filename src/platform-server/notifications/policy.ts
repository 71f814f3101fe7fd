// Decides which callers may use the notification service. The contract requires 401 if the refused call would create a
// subscriber, subscribe or unsubscribe. It requires 403 for every other refusal.
import { role } from '../../service/auth/bearer-guards.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';

const [app, admin] = ['subscription-app', 'subscription-admin'];

/** The guard of routes that read one subscriber, or perform an operation on one. */
export const mayUseSubscribers: Guard = role(app, admin);

/** The guard of routes that list subscriptions, or read one subscription. */
export const mayListSubscriptions: Guard = role(admin);

/** The guard of routes that create a subscriber, subscribe or unsubscribe. */
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
