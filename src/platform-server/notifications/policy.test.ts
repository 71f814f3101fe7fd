// Tests which callers may use the notification service, and the status of refusals.
import { describe, expect, it } from 'vitest';
import { createExchange, refusal } from '../../../test/support/express-exchange.ts';
import type { Caller } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { mayListSubscriptions, maySubscribe, mayUseSubscribers } from './policy.ts';

const caller = (...roles: string[]): Caller => ({
  ...{ subject: 's', name: 'Service', issuer: 'https://access.example.org', realm: 'demo', clientId: 'app' },
  ...{ isCore: false, roles: new Set(roles) },
});
const check = (guard: Guard, ...roles: string[]) =>
  refusal(guard, createExchange({ locals: { caller: caller(...roles) } }));
const status = async (guard: Guard, ...roles: string[]) => (await check(guard, ...roles))?.status ?? 'passes';

describe('a caller with the role', () => {
  // The outcomes are in this order: use subscribers, list subscriptions, subscribe.
  it.each([
    ['subscription-app', ['passes', 403, 'passes']],
    ['subscription-admin', ['passes', 'passes', 'passes']],
    ['form-admin', [403, 403, 401]],
    ['urn:example:platform:notification-service:subscription-app', [403, 403, 401]],
  ])('%s uses subscribers, lists subscriptions and subscribes: %j', async (role, outcomes) => {
    const found = [mayUseSubscribers, mayListSubscriptions, maySubscribe].map((guard) => status(guard, role));
    expect(await Promise.all(found)).toEqual(outcomes);
  });
});

describe('a caller who may not subscribe', () => {
  it('gets 401 with a challenge that names the cause, as the contract requires', async () => {
    expect(await check(maySubscribe, 'form-admin')).toMatchObject({
      slug: 'unauthenticated',
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
    expect(maySubscribe.name).toBe('roleOr401(subscription-app, subscription-admin)');
  });
});
