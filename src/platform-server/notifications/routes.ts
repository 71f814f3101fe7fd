// The notification service's addresses for types and subscriptions.
import { bearer, callTenant } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Tenant, Tenants } from '../../service/auth/identity.ts';
import { type Answer, type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import type { Urns } from '../../service/urn.ts';
import { toPage } from '../page.ts';
import { tenantKey } from '../tenant-key.ts';
import type { NotificationType } from './notification-type.ts';
import { mayListSubscriptions, maySubscribe, mayUseSubscribers } from './policy.ts';
import {
  criteriaBody,
  criteriaQuery,
  deletedAnswer,
  subscribeBody,
  subscriptionAnswer,
  subscriptionParams,
  subscriptionsQuery,
  typeAnswer,
  typeParams,
} from './schema.ts';
import type { SubscriberStore } from './subscribers-store.ts';
import type { Subscribing } from './subscribing.ts';
import { type Subscription, showSubscriber } from './subscription.ts';
import type { SubscriptionStore } from './subscriptions-store.ts';

export interface SubscriptionRouteOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId'>;
  urns: Urns;
  subscribers: SubscriberStore;
  subscriptions: SubscriptionStore;
  subscribing: Subscribing;
  /** The notification types of a tenant, by id. */
  typesOf(tenant: string): Promise<Map<string, NotificationType>>;
}

export const notificationRefusals: Record<number, Answer> = {
  400: { description: 'No tenant, or the parameters or the body are invalid' },
  401: { description: 'No valid bearer; where something is to be changed, also a caller without the role' },
  403: { description: 'The caller lacks the role, or belongs to another tenant' },
  404: { description: 'The type, subscriber or subscription does not exist' },
};

const types = '/subscription/v1/types';
const one = `${types}/:typeId/subscriptions/:subscriberId`;

/** What each route below needs: the options, its guards, and how a subscription is shown. */
interface Parts extends SubscriptionRouteOptions {
  verified: Guard;
  tenant: Guard;
  typeOf(key: string, typeId: string): Promise<NotificationType>;
  show(of: Tenant, subscription: Subscription): Promise<unknown>;
  find(of: Tenant, typeId: string, subscriberId: string): Promise<unknown>;
}

export function subscriptionRoutes(options: SubscriptionRouteOptions): Route[] {
  const { subscriptions, subscribers, urns } = options;
  const show = async (of: Tenant, subscription: Subscription) => {
    const subscriber = await subscribers.find(tenantKey(of.id), subscription.subscriberId);
    return { ...subscription, subscriber: subscriber && showSubscriber(subscriber, of.id, urns.subscriber) };
  };
  const parts: Parts = {
    ...options,
    verified: bearer(options.verifier, [urns.service('notification-service')]),
    tenant: callTenant(options.tenants),
    show,
    async typeOf(key, typeId) {
      const type = (await options.typesOf(key)).get(typeId);
      if (!type) throw new Problem('not-found', 'The notification type does not exist.');
      return type;
    },
    async find(of, typeId, subscriberId) {
      const subscription = await subscriptions.find(tenantKey(of.id), typeId, subscriberId);
      return subscription && show(of, subscription);
    },
  };
  return [
    typesRoute(parts),
    typeRoute(parts),
    subscribeRoute(parts),
    listRoute(parts),
    criteriaRoute(parts),
    subscriptionRoute(parts),
    unsubscribeRoute(parts),
    removeCriteriaRoute(parts),
  ];
}

function typesRoute({ verified, tenant, typesOf }: Parts): Route {
  return route({
    method: 'get',
    path: types,
    summary: 'List the notification types of the tenant',
    guards: [verified, mayUseSubscribers, tenant],
    answers: { 200: { description: 'All types', schema: typeAnswer.array() }, ...notificationRefusals },
    async handle(_input, _request, response) {
      const found = await typesOf(tenantKey(tenantOf(response).id));
      response.json([...found.values()].map((type) => typeAnswer.parse(type)));
    },
  });
}

function typeRoute({ verified, tenant, typeOf }: Parts): Route {
  return route({
    method: 'get',
    path: `${types}/:typeId`,
    summary: 'Read a notification type',
    guards: [verified, mayUseSubscribers, tenant],
    params: typeParams,
    answers: { 200: { description: 'The type', schema: typeAnswer }, ...notificationRefusals },
    async handle({ params }, _request, response) {
      response.json(typeAnswer.parse(await typeOf(tenantKey(tenantOf(response).id), params.typeId)));
    },
  });
}

function subscribeRoute({ verified, tenant, typeOf, subscribing, find }: Parts): Route {
  return route({
    method: 'post',
    path: `${types}/:typeId/subscriptions`,
    summary: 'Subscribe; the same userId finds the same subscriber',
    guards: [verified, maySubscribe, tenant],
    params: typeParams,
    body: subscribeBody,
    answers: { 200: { description: 'The subscription', schema: subscriptionAnswer }, ...notificationRefusals },
    async handle({ params: { typeId }, body }, _request, response) {
      const of = tenantOf(response);
      await typeOf(tenantKey(of.id), typeId);
      response.json(await find(of, typeId, await subscribing.subscribe(tenantKey(of.id), typeId, body)));
    },
  });
}

function listRoute({ verified, tenant, typeOf, subscriptions, show }: Parts): Route {
  return route({
    method: 'get',
    path: `${types}/:typeId/subscriptions`,
    summary: 'List the subscriptions of a type',
    guards: [verified, mayListSubscriptions, tenant],
    params: typeParams,
    query: subscriptionsQuery,
    answers: { 200: { description: 'A page' }, ...notificationRefusals },
    async handle({ params: { typeId }, query }, _request, response) {
      const of = tenantOf(response);
      await typeOf(tenantKey(of.id), typeId);
      const { top, after, subscriptionMatch: match } = query;
      const rows = await subscriptions.list(tenantKey(of.id), typeId, { top, after, match });
      const { results, page } = toPage(rows, { top, after, cursorOf: ({ subscriberId }) => subscriberId });
      response.json({ results: await Promise.all(results.map((subscription) => show(of, subscription))), page });
    },
  });
}

function criteriaRoute({ verified, tenant, typeOf, subscribing, find }: Parts): Route {
  return route({
    method: 'post',
    path: one,
    summary: 'Add a criterion to a subscription; an array replaces all',
    guards: [verified, maySubscribe, tenant],
    params: subscriptionParams,
    body: criteriaBody,
    answers: { 200: { description: 'The subscription', schema: subscriptionAnswer }, ...notificationRefusals },
    async handle({ params: { typeId, subscriberId }, body }, _request, response) {
      const of = tenantOf(response);
      await typeOf(tenantKey(of.id), typeId);
      await subscribing.addOrReplace(tenantKey(of.id), typeId, subscriberId, body.criteria);
      response.json(await find(of, typeId, subscriberId));
    },
  });
}

function subscriptionRoute({ verified, tenant, find }: Parts): Route {
  return route({
    method: 'get',
    path: one,
    summary: 'Read a subscription; the body is empty if there is none',
    guards: [verified, mayListSubscriptions, tenant],
    params: subscriptionParams,
    answers: { 200: { description: 'The subscription', schema: subscriptionAnswer }, ...notificationRefusals },
    async handle({ params: { typeId, subscriberId } }, _request, response) {
      const found = await find(tenantOf(response), typeId, subscriberId);
      if (found) response.json(found);
      else response.end();
    },
  });
}

function unsubscribeRoute({ verified, tenant, subscriptions }: Parts): Route {
  return route({
    method: 'delete',
    path: one,
    summary: 'Unsubscribe',
    guards: [verified, maySubscribe, tenant],
    params: subscriptionParams,
    answers: {
      200: { description: 'Whether the subscription existed', schema: deletedAnswer },
      ...notificationRefusals,
    },
    async handle({ params: { typeId, subscriberId } }, _request, response) {
      const key = tenantKey(tenantOf(response).id);
      response.json({ deleted: await subscriptions.remove(key, typeId, subscriberId) });
    },
  });
}

function removeCriteriaRoute({ verified, tenant, subscribing }: Parts): Route {
  return route({
    method: 'delete',
    path: `${one}/criteria`,
    summary: 'Remove a criterion; the last one removes the subscription',
    guards: [verified, maySubscribe, tenant],
    params: subscriptionParams,
    query: criteriaQuery,
    answers: { 200: { description: 'Whether the criterion existed', schema: deletedAnswer }, ...notificationRefusals },
    async handle({ params: { typeId, subscriberId }, query }, _request, response) {
      const key = tenantKey(tenantOf(response).id);
      response.json({ deleted: await subscribing.removeCriterion(key, typeId, subscriberId, query.criteria ?? {}) });
    },
  });
}
