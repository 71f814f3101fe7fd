// The notification service's addresses for one subscriber: read, remove, send a code, check a code. Codes go by mail;
// there is no provider for text messages here, so every other channel is refused with 400.
import { bearer, callTenant } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Tenant, Tenants } from '../../service/auth/identity.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import type { Urns } from '../../service/urn.ts';
import type { Mail } from '../mail.ts';
import { tenantKey } from '../tenant-key.ts';
import { codeMail } from './code-mail.ts';
import { maySubscribe, mayUseSubscribers } from './policy.ts';
import { notificationRefusals } from './routes.ts';
import { deletedAnswer, operationAnswer, operationBody, subscriberAnswer, subscriberParams } from './schema.ts';
import type { SubscriberStore } from './subscribers-store.ts';
import type { Subscribing } from './subscribing.ts';
import { type Subscriber, showSubscriber } from './subscription.ts';

/** Where a code goes. */
interface Place {
  subscriberId: string;
  channel: string;
  address: string;
}

export interface SubscriberRouteOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId'>;
  urns: Urns;
  subscribers: SubscriberStore;
  subscribing: Subscribing;
  codes: {
    issue(to: Place): Promise<string>;
    check(at: Place, code: string): Promise<boolean | undefined>;
  };
  sendMail(mail: Mail): Promise<void>;
  /** The sender that the tenant has chosen. */
  senderOf(tenant: string): Promise<string | undefined>;
}

const path = '/subscription/v1/subscribers/:subscriberId';

interface Parts extends SubscriberRouteOptions {
  verified: Guard;
  tenant: Guard;
}

export function subscriberRoutes(options: SubscriberRouteOptions): Route[] {
  const verified = bearer(options.verifier, [options.urns.service('notification-service')]);
  const parts: Parts = { ...options, verified, tenant: callTenant(options.tenants) };
  return [readRoute(parts), removeRoute(parts), operationRoute(parts)];
}

async function subscriberOf(subscribers: SubscriberStore, of: Tenant, id: string): Promise<Subscriber> {
  const found = await subscribers.find(tenantKey(of.id), id);
  if (!found) throw new Problem('not-found', 'The subscriber does not exist.');
  return found;
}

function readRoute({ verified, tenant, subscribers, urns }: Parts): Route {
  return route({
    method: 'get',
    path,
    summary: 'Read a subscriber',
    guards: [verified, mayUseSubscribers, tenant],
    params: subscriberParams,
    answers: { 200: { description: 'The subscriber', schema: subscriberAnswer }, ...notificationRefusals },
    async handle({ params }, _request, response) {
      const of = tenantOf(response);
      const found = await subscriberOf(subscribers, of, params.subscriberId);
      response.json(showSubscriber(found, of.id, urns.subscriber));
    },
  });
}

function removeRoute({ verified, tenant, subscribing }: Parts): Route {
  return route({
    method: 'delete',
    path,
    summary: 'Delete a subscriber with its addresses, subscriptions, codes and pending notices',
    guards: [verified, maySubscribe, tenant],
    params: subscriberParams,
    answers: { 200: { description: 'The subscriber is deleted', schema: deletedAnswer }, ...notificationRefusals },
    async handle({ params }, _request, response) {
      if (!(await subscribing.removeSubscriber(tenantKey(tenantOf(response).id), params.subscriberId)))
        throw new Problem('not-found', 'The subscriber does not exist.');
      response.json({ deleted: true });
    },
  });
}

function operationRoute(parts: Parts): Route {
  return route({
    method: 'post',
    path,
    summary: 'Send or check a code',
    guards: [parts.verified, mayUseSubscribers, parts.tenant],
    params: subscriberParams,
    body: operationBody,
    answers: {
      200: { description: 'The result of the operation', schema: operationAnswer },
      ...notificationRefusals,
      500: { description: 'The code could not be sent' },
    },
    async handle({ params, body }, _request, response) {
      const of = tenantOf(response);
      const subscriber = await subscriberOf(parts.subscribers, of, params.subscriberId);
      const { channel, address } = body;
      if (!subscriber.channels.some((known) => known.channel === channel && known.address === address))
        throw invalidRequest([{ pointer: '/channel', detail: 'is not a channel of the subscriber with this address' }]);
      if (channel !== 'email')
        throw invalidRequest([{ pointer: '/channel', detail: 'cannot be used for codes: it has no provider' }]);
      const place = { subscriberId: subscriber.id, channel, address };
      if (body.operation === 'send-code') {
        await sendCode(parts, of, { ...place, name: subscriber.addressAs, reason: body.reason });
        response.json({ sent: true });
        return;
      }
      const isRight = await parts.codes.check(place, body.code);
      if (isRight === undefined)
        throw invalidRequest([{ pointer: '/code', detail: 'cannot be checked: no code was sent to this address' }]);
      response.json({ verified: isRight });
    },
  });
}

async function sendCode(
  { codes, sendMail, senderOf }: Parts,
  of: Tenant,
  { name, reason, ...place }: Place & { name: string; reason?: string | null | undefined },
): Promise<void> {
  const mail = codeMail({ name, address: place.address }, await codes.issue(place), reason);
  try {
    await sendMail({ ...mail, from: await senderOf(tenantKey(of.id)) });
  } catch (cause) {
    throw new Problem('internal', 'The code could not be sent.', { cause });
  }
}
