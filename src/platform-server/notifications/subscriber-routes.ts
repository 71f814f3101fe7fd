// Routes of the notification service for one subscriber: read, remove, send a code, and check a code. Codes are sent
// only by mail. Other channels are refused with 400, because this server has no provider for text messages.
import type { Tenant } from '../../service/auth/identity.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import type { LocalRateLimiter } from '../../service/limits/rate-limit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Urns } from '../../service/urn.ts';
import type { CodePlace } from '../codes/code.ts';
import type { Codes, IssuedCode } from '../codes/codes.ts';
import { type Mail, MailError } from '../mail.ts';
import { tenantKey } from '../tenant-key.ts';
import { type CodeLanguage, codeLanguages, codeMail } from './code-mail.ts';
import { maySubscribe, mayUseSubscribers } from './policy.ts';
import { notificationRefusals } from './routes.ts';
import {
  deletedResponse,
  operationBody,
  operationResponse,
  readSubscriberResponse,
  subscriberParams,
} from './schema.ts';
import type { SubscriberStore } from './subscribers-store.ts';
import type { Subscribing } from './subscribing.ts';
import { type Subscriber, showSubscriber } from './subscription.ts';

export interface SubscriberRouteOptions {
  bearer: Guard;
  tenant: Guard;
  urns: Urns;
  subscribers: SubscriberStore;
  subscribing: Subscribing;
  codes: Codes;
  log: Logger;
  /** Limits the codes of an address. */
  codeLimit: LocalRateLimiter;
  /** Throws Problem `busy` if too many mails of the tenant are being sent. */
  sendMail(tenant: string, mail: Mail): Promise<void>;
  /**
   * Returns the number of notices still to be sent to a subscriber. Undefined if responses do not contain this number.
   */
  pendingNotices(tenant: string, id: string): Promise<number | undefined>;
  /** Returns the sender of the tenant's mail. Undefined means the operator's sender. */
  senderOf(tenant: string): Promise<string | undefined>;
}

const path = '/subscription/v1/subscribers/:subscriberId';

export function subscriberRoutes(options: SubscriberRouteOptions): Route[] {
  return [readRoute(options), removeRoute(options), operationRoute(options)];
}

async function subscriberOf(subscribers: SubscriberStore, of: Tenant, id: string): Promise<Subscriber> {
  const found = await subscribers.find(tenantKey(of.id), id);
  if (!found) throw new Problem('not-found', 'The subscriber does not exist.');
  return found;
}

function readRoute({ bearer, tenant, subscribers, urns, pendingNotices }: SubscriberRouteOptions): Route {
  return route({
    method: 'get',
    path,
    summary: 'One subscriber, and how many notices are still to be sent to it',
    guards: [bearer, mayUseSubscribers, tenant],
    params: subscriberParams,
    responses: { 200: { description: 'The subscriber', schema: readSubscriberResponse }, ...notificationRefusals },
    async handle({ params }, _request, response) {
      const of = tenantOf(response);
      const found = await subscriberOf(subscribers, of, params.subscriberId);
      const pending = await pendingNotices(tenantKey(of.id), found.id);
      response.json({
        ...showSubscriber(found, of.id, urns.subscriber),
        ...(pending !== undefined && { pendingNotices: pending }),
      });
    },
  });
}

function removeRoute({ bearer, tenant, subscribing }: SubscriberRouteOptions): Route {
  return route({
    method: 'delete',
    path,
    audit: 'subscriber.delete',
    summary: 'Removes a subscriber with its addresses, subscriptions, codes and whatever still waits for it',
    guards: [bearer, maySubscribe, tenant],
    params: subscriberParams,
    responses: { 200: { description: 'The subscriber is deleted', schema: deletedResponse }, ...notificationRefusals },
    async handle({ params }, _request, response) {
      if (!(await subscribing.removeSubscriber(tenantKey(tenantOf(response).id), params.subscriberId)))
        throw new Problem('not-found', 'The subscriber does not exist.');
      response.json({ deleted: true });
    },
  });
}

function operationRoute(options: SubscriberRouteOptions): Route {
  const { bearer, tenant, subscribers, codes } = options;
  return route({
    method: 'post',
    path,
    audit: {
      actions: ['subscriber.send-code', 'subscriber.check-code'],
      of: ({ body: { operation } }) => `subscriber.${operation}` as const,
    },
    summary: 'send-code or check-code',
    guards: [bearer, mayUseSubscribers, tenant],
    params: subscriberParams,
    body: operationBody,
    headers: { 'Idempotency-Key': 'For check-code: the same check returns the same result until the code expires' },
    responses: {
      200: { description: 'The result of the operation', schema: operationResponse },
      ...notificationRefusals,
      429: { description: 'Too many codes were sent to this address' },
      500: { description: 'The code was not sent' },
      504: { description: 'The mail server did not reply, so the code may have been sent' },
    },
    async handle({ params, body }, request, response) {
      const of = tenantOf(response);
      const subscriber = await subscriberOf(subscribers, of, params.subscriberId);
      const { channel, address } = body;
      if (!subscriber.channels.some((known) => known.channel === channel && known.address === address))
        throw invalidRequest([{ pointer: '/channel', detail: 'is not a channel of the subscriber with this address' }]);
      if (channel !== 'email')
        throw invalidRequest([{ pointer: '/channel', detail: 'has no provider here that could send a code' }]);
      const to = { subscriberId: subscriber.id, channel, address };
      if (body.operation === 'send-code') {
        const language = request.acceptsLanguages([...codeLanguages]) === 'fr' ? 'fr' : 'en';
        await sendCode(options, of, { ...to, name: subscriber.addressAs, reason: body.reason, language });
        response.json({ sent: true });
        return;
      }
      const isRight = await codes.check(tenantKey(of.id), to, body.code, request.get('idempotency-key'));
      if (isRight === undefined)
        throw invalidRequest([{ pointer: '/code', detail: 'cannot be checked: no code was sent to this address' }]);
      response.json({ verified: isRight });
    },
  });
}

interface CodeText {
  name: string;
  reason?: string | null | undefined;
  language: CodeLanguage;
}

async function sendCode(
  { codes, codeLimit, sendMail, senderOf, log }: SubscriberRouteOptions,
  of: Tenant,
  { name, reason, language, ...to }: CodePlace & CodeText,
): Promise<void> {
  const key = tenantKey(of.id);
  const counted = `${key}:${to.address}`;
  const { isAllowed, reset } = codeLimit.count(counted);
  if (!isAllowed)
    throw new Problem('too-many-requests', `${codeLimit.most} codes were sent to this address in the last hour.`, {
      headers: { 'Retry-After': String(reset) },
    });
  let issued: IssuedCode | undefined;
  try {
    issued = await codes.issue(key, to);
    const mail = codeMail({ to: { name, address: to.address }, code: issued.code, reason, language });
    await sendMail(key, { ...mail, from: await senderOf(key) });
  } catch (cause) {
    // A code that may have been sent counts, and replaces the previous one (decision 0085).
    if (!(cause instanceof MailError && cause.mayHaveSent)) {
      codeLimit.uncount(counted);
      // If the database fails here, the previous code no longer works, but the person can ask for another code.
      await issued
        ?.withdraw()
        .catch((error: unknown) => log.warn({ err: error, tenant: of.id }, 'unsent code not withdrawn'));
    }
    if (cause instanceof MailError && cause.refusedRecipient)
      throw invalidRequest([{ pointer: '/address', detail: 'was refused by the mail server' }]);
    if (!(cause instanceof MailError)) throw cause;
    throw cause.mayHaveSent
      ? new Problem('dependency-timeout', 'The mail server did not reply. The code may have been sent.', { cause })
      : new Problem('internal', 'The code could not be sent.', { cause });
  }
}
