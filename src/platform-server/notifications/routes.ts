// Routes of the notification service for types and subscriptions.
import type { Tenant } from '../../service/auth/identity.ts';
import { type Guard, type ResponseDescription, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import type { Urns } from '../../service/urn.ts';
import { shortPages, toPage } from '../page.ts';
import { tenantKey } from '../tenant-key.ts';
import type { NotificationType } from './notification-type.ts';
import { mayListSubscriptions, maySubscribe, mayUseSubscribers } from './policy.ts';
import {
  criteriaBody,
  criteriaQuery,
  deletedResponse,
  readTypeResponse,
  subscribeBody,
  subscriptionBodyLimit,
  subscriptionParams,
  subscriptionResponse,
  subscriptionsQuery,
  typeParams,
  typeResponse,
} from './schema.ts';
import type { SubscriberStore } from './subscribers-store.ts';
import type { Subscribing } from './subscribing.ts';
import { mostCriteria, type Subscription, showSubscriber } from './subscription.ts';
import type { SubscriptionStore } from './subscriptions-store.ts';

export interface SubscriptionRouteOptions {
  bearer: Guard;
  tenant: Guard;
  urns: Urns;
  subscribers: SubscriberStore;
  subscriptions: SubscriptionStore;
  subscribing: Subscribing;
  /** Returns the notification types of a tenant, keyed by id. */
  typesOf(tenant: string): Promise<Map<string, NotificationType>>;
  /** The channels to which codes can be sent. Undefined if responses do not list the channels. */
  codeChannels: string[] | undefined;
}

export const notificationRefusals: Record<number, ResponseDescription> = {
  400: { description: 'No tenant, or the parameters or the body are not valid' },
  401: { description: 'No valid bearer; for changes, also a caller without the role' },
  403: { description: 'The caller lacks the role, or belongs to another tenant' },
  404: { description: 'The type, subscriber or subscription does not exist' },
};

const criteriaRefusals: Record<number, ResponseDescription> = {
  ...notificationRefusals,
  409: {
    description: `The subscription has ${mostCriteria} criteria, or the tenant has too many with the same correlation id, or without one`,
  },
};

const types = '/subscription/v1/types';
const one = `${types}/:typeId/subscriptions/:subscriberId`;

/**
 * The dependencies of the routes below: the options, and functions that find a type and show or find a subscription.
 */
interface SubscriptionHandling extends SubscriptionRouteOptions {
  typeOf(key: string, typeId: string): Promise<NotificationType>;
  show(of: Tenant, subscriptions: Subscription[]): Promise<unknown[]>;
  find(of: Tenant, typeId: string, subscriberId: string): Promise<unknown>;
}

export function subscriptionRoutes(options: SubscriptionRouteOptions): Route[] {
  const { subscriptions, subscribers, urns } = options;
  const show = async (of: Tenant, found: Subscription[]) => {
    const ids = found.map(({ subscriberId }) => subscriberId);
    const known = new Map((await subscribers.findAll(tenantKey(of.id), ids)).map((one) => [one.id, one]));
    return found.map((subscription) => {
      const subscriber = known.get(subscription.subscriberId);
      return { ...subscription, subscriber: subscriber && showSubscriber(subscriber, of.id, urns.subscriber) };
    });
  };
  const handling: SubscriptionHandling = {
    ...options,
    show,
    async typeOf(key, typeId) {
      const type = (await options.typesOf(key)).get(typeId);
      if (!type) throw new Problem('not-found', 'The notification type does not exist.');
      return type;
    },
    async find(of, typeId, subscriberId) {
      const subscription = await subscriptions.find(tenantKey(of.id), typeId, subscriberId);
      return subscription && (await show(of, [subscription]))[0];
    },
  };
  return [
    typesRoute(handling),
    typeRoute(handling),
    subscribeRoute(handling),
    listRoute(handling),
    criteriaRoute(handling),
    subscriptionRoute(handling),
    unsubscribeRoute(handling),
    removeCriteriaRoute(handling),
  ];
}

function typesRoute({ bearer, tenant, typesOf }: SubscriptionHandling): Route {
  return route({
    method: 'get',
    path: types,
    summary: 'The notification types of the tenant',
    guards: [bearer, mayUseSubscribers, tenant],
    responses: { 200: { description: 'All of them', schema: typeResponse.array() }, ...notificationRefusals },
    async handle(_input, _request, response) {
      const found = await typesOf(tenantKey(tenantOf(response).id));
      response.json([...found.values()].map((type) => typeResponse.parse(type)));
    },
  });
}

function typeRoute({ bearer, tenant, typeOf, codeChannels }: SubscriptionHandling): Route {
  return route({
    method: 'get',
    path: `${types}/:typeId`,
    summary: 'One notification type, and the channels to which codes can be sent',
    guards: [bearer, mayUseSubscribers, tenant],
    params: typeParams,
    responses: { 200: { description: 'The type', schema: readTypeResponse }, ...notificationRefusals },
    async handle({ params }, _request, response) {
      const type = await typeOf(tenantKey(tenantOf(response).id), params.typeId);
      response.json(readTypeResponse.parse({ ...type, codeChannels }));
    },
  });
}

function subscribeRoute({ bearer, tenant, typeOf, subscribing, find }: SubscriptionHandling): Route {
  return route({
    method: 'post',
    path: `${types}/:typeId/subscriptions`,
    audit: 'subscription.create',
    summary: 'Subscribes; the same userId finds the same subscriber',
    guards: [bearer, maySubscribe, tenant],
    params: typeParams,
    body: subscribeBody,
    bodyLimit: subscriptionBodyLimit,
    responses: { 200: { description: 'The subscription', schema: subscriptionResponse }, ...criteriaRefusals },
    async handle({ params: { typeId }, body }, _request, response) {
      const of = tenantOf(response);
      await typeOf(tenantKey(of.id), typeId);
      const subscriberId = await subscribing.subscribe(tenantKey(of.id), typeId, body);
      noteAudit(response, { objectId: subscriberId });
      response.json(await find(of, typeId, subscriberId));
    },
  });
}

function listRoute({ bearer, tenant, typeOf, subscriptions, show }: SubscriptionHandling): Route {
  return route({
    method: 'get',
    path: `${types}/:typeId/subscriptions`,
    summary: 'The subscriptions of a type',
    description: shortPages,
    guards: [bearer, mayListSubscriptions, tenant],
    params: typeParams,
    query: subscriptionsQuery,
    responses: { 200: { description: 'A page' }, ...notificationRefusals },
    async handle({ params: { typeId }, query }, _request, response) {
      const of = tenantOf(response);
      await typeOf(tenantKey(of.id), typeId);
      const { top, after, subscriptionMatch: match } = query;
      const { items, hasMore } = await subscriptions.list(tenantKey(of.id), typeId, { top, after, match });
      const { results, page } = toPage(items, { hasMore, after, cursorOf: ({ subscriberId }) => subscriberId });
      response.json({ results: await show(of, results), page });
    },
  });
}

function criteriaRoute({ bearer, tenant, typeOf, subscribing, find }: SubscriptionHandling): Route {
  return route({
    method: 'post',
    path: one,
    audit: 'subscription.change',
    summary: 'Adds criteria to a subscription; an array replaces them',
    guards: [bearer, maySubscribe, tenant],
    params: subscriptionParams,
    body: criteriaBody,
    bodyLimit: subscriptionBodyLimit,
    responses: { 200: { description: 'The subscription', schema: subscriptionResponse }, ...criteriaRefusals },
    async handle({ params: { typeId, subscriberId }, body }, _request, response) {
      const of = tenantOf(response);
      await typeOf(tenantKey(of.id), typeId);
      await subscribing.addOrReplace(tenantKey(of.id), typeId, subscriberId, body.criteria);
      response.json(await find(of, typeId, subscriberId));
    },
  });
}

function subscriptionRoute({ bearer, tenant, find }: SubscriptionHandling): Route {
  return route({
    method: 'get',
    path: one,
    summary: 'One subscription; an empty body where there is none',
    guards: [bearer, mayListSubscriptions, tenant],
    params: subscriptionParams,
    responses: { 200: { description: 'The subscription', schema: subscriptionResponse }, ...notificationRefusals },
    async handle({ params: { typeId, subscriberId } }, _request, response) {
      const found = await find(tenantOf(response), typeId, subscriberId);
      if (found) response.json(found);
      else response.end();
    },
  });
}

function unsubscribeRoute({ bearer, tenant, subscriptions }: SubscriptionHandling): Route {
  return route({
    method: 'delete',
    path: one,
    audit: 'subscription.delete',
    summary: 'Unsubscribes',
    guards: [bearer, maySubscribe, tenant],
    params: subscriptionParams,
    responses: {
      200: { description: 'Whether the subscription existed', schema: deletedResponse },
      ...notificationRefusals,
    },
    async handle({ params: { typeId, subscriberId } }, _request, response) {
      const key = tenantKey(tenantOf(response).id);
      response.json({ deleted: await subscriptions.remove(key, typeId, subscriberId) });
    },
  });
}

function removeCriteriaRoute({ bearer, tenant, subscribing }: SubscriptionHandling): Route {
  return route({
    method: 'delete',
    path: `${one}/criteria`,
    audit: 'subscription.change',
    summary: 'Removes one of the criteria; the last one takes the subscription with it',
    guards: [bearer, maySubscribe, tenant],
    params: subscriptionParams,
    query: criteriaQuery,
    responses: {
      200: { description: 'Whether the criterion existed', schema: deletedResponse },
      ...notificationRefusals,
    },
    async handle({ params: { typeId, subscriberId }, query }, _request, response) {
      const key = tenantKey(tenantOf(response).id);
      response.json({ deleted: await subscribing.removeCriterion(key, typeId, subscriberId, query.criteria ?? {}) });
    },
  });
}
