// The notification service's addresses for one subscriber: read, remove, send a code, check a code. Codes go by mail;
// there is no provider for text messages here, so every other channel is refused with 400.
import { bearer, callTenant } from '../../service/bearer-guards.ts';
import { type Route, route } from '../../service/http-app.ts';
import type { BearerVerifier, Tenant, Tenants } from '../../service/identity.ts';
import { invalidRequest, Problem } from '../../service/problem.ts';
import { tenantOf } from '../../service/request-context.ts';
import type { Urns } from '../../service/urn.ts';
import type { Mail } from '../mail.ts';
import { tenantKey } from '../tenant-key.ts';
import { codeMail } from './code-mail.ts';
import { maySubscribe, mayUseSubscribers } from './policy.ts';
import { notificationRefusals } from './routes.ts';
import { deletedAnswer, operationAnswer, operationBody, subscriberAnswer, subscriberParams } from './schema.ts';
import type { SubscriberStore } from './subscribers-store.ts';
import type { Subscribing } from './subscribing.ts';
import { showSubscriber, type Subscriber } from './subscription.ts';

export interface SubscriberRouteOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId'>;
  urns: Urns;
  subscribers: SubscriberStore;
  subscribing: Subscribing;
  codes: {
    issue(to: { subscriberId: string; channel: string; address: string }): Promise<string>;
    check(at: { subscriberId: string; channel: string; address: string }, code: string): Promise<boolean | undefined>;
  };
  sendMail(mail: Mail): Promise<void>;
  /** The sender that the tenant has chosen. */
  senderOf(tenant: string): Promise<string | undefined>;
}

const path = '/subscription/v1/subscribers/:subscriberId';

export function subscriberRoutes(options: SubscriberRouteOptions): Route[] {
  const { subscribers, subscribing, codes, urns } = options;
  const verified = bearer(options.verifier, [urns.service('notification-service')]);
  const tenant = callTenant(options.tenants);

  async function subscriberOf(of: Tenant, id: string): Promise<Subscriber> {
    const found = await subscribers.find(tenantKey(of.id), id);
    if (!found) throw new Problem('not-found', 'There is no such subscriber.');
    return found;
  }

  async function sendCode(of: Tenant, subscriber: Subscriber, address: string, reason: string | null | undefined) {
    const to = { subscriberId: subscriber.id, channel: 'email', address };
    const mail = codeMail({ name: subscriber.addressAs, address }, await codes.issue(to), reason);
    try {
      await options.sendMail({ ...mail, from: await options.senderOf(tenantKey(of.id)) });
    } catch (cause) {
      throw new Problem('internal', 'The code could not be sent.', { cause });
    }
  }

  return [
    route({
      method: 'get',
      path,
      summary: 'One subscriber',
      guards: [verified, mayUseSubscribers, tenant],
      params: subscriberParams,
      answers: { 200: { description: 'The subscriber', schema: subscriberAnswer }, ...notificationRefusals },
      async handle({ params }, _request, response) {
        const of = tenantOf(response);
        const found = await subscriberOf(of, params.subscriberId);
        response.json(showSubscriber(found, of.id, urns.subscriber));
      },
    }),
    route({
      method: 'delete',
      path,
      summary: 'Removes a subscriber with its addresses, subscriptions, codes and whatever still waits for it',
      guards: [verified, maySubscribe, tenant],
      params: subscriberParams,
      answers: { 200: { description: 'It is gone', schema: deletedAnswer }, ...notificationRefusals },
      async handle({ params }, _request, response) {
        if (!(await subscribing.removeSubscriber(tenantKey(tenantOf(response).id), params.subscriberId)))
          throw new Problem('not-found', 'There is no such subscriber.');
        response.json({ deleted: true });
      },
    }),
    route({
      method: 'post',
      path,
      summary: 'send-code or check-code',
      guards: [verified, mayUseSubscribers, tenant],
      params: subscriberParams,
      body: operationBody,
      answers: {
        200: { description: 'What came of it', schema: operationAnswer },
        ...notificationRefusals,
        500: { description: 'The code could not be sent' },
      },
      async handle({ params, body }, _request, response) {
        const of = tenantOf(response);
        const subscriber = await subscriberOf(of, params.subscriberId);
        const { channel, address } = body;
        if (!subscriber.channels.some((one) => one.channel === channel && one.address === address))
          throw invalidRequest([{ pointer: '/channel', detail: 'is no channel of the subscriber at this address' }]);
        if (channel !== 'email')
          throw invalidRequest([{ pointer: '/channel', detail: 'has no provider here that could send a code' }]);
        if (body.operation === 'send-code') {
          await sendCode(of, subscriber, address, body.reason);
          response.json({ sent: true });
          return;
        }
        const isRight = await codes.check({ subscriberId: subscriber.id, channel, address }, body.code);
        if (isRight === undefined)
          throw invalidRequest([{ pointer: '/code', detail: 'cannot be checked: no code was sent yet' }]);
        response.json({ verified: isRight });
      },
    }),
  ];
}
