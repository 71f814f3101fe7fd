// Limits how many forms a caller may create, and how many large bodies a caller may send to create forms. Intake
// applications have other limits: they create forms for applicants without an account.
import type { Caller } from '../../service/auth/identity.ts';
import { mayBeLarge } from '../../service/http/body-bytes.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';
import { hasBody } from '../../service/http/request-framing.ts';
import { type RateLimits, rateLimit } from '../../service/limits/rate-limit.ts';
import { intakeRole, isPerson } from './policy.ts';

export interface CreationLimits {
  /** Limits large bodies of creation requests, because they are read before access is decided. */
  largeCreates: Guard;
  countCreate: CountCreate;
}

export function creationLimits(limits: RateLimits): CreationLimits {
  return { largeCreates: largeCreates(limits), countCreate: createCount(limits) };
}

/**
 * Counts a form that the caller is about to create. Returns a function that takes the count back; call it if no form
 * was created. Throws Problem `too-many-requests` if the limit is reached.
 */
export type CountCreate = (caller: Caller) => () => void;

/**
 * Limits how many forms a person may create. Each form causes mails to addresses that the person may choose, and events
 * that share a queue with the events of all tenants. Service accounts are not limited, because they create the forms of
 * many people.
 */
function createCount(limits: RateLimits): CountCreate {
  const limiter = limits.local({ name: 'creates', most: 60, window: 60 * 60_000 });
  return (caller) => {
    if (!isPerson(caller)) return () => undefined;
    const key = keyOf(caller);
    const { isAllowed, reset } = limiter.count(key);
    if (isAllowed) return () => limiter.uncount(key);
    const headers = { 'Retry-After': String(reset) };
    throw new Problem('too-many-requests', `More than ${limiter.most} forms were created in an hour.`, { headers });
  };
}

/**
 * A guard that limits how many large bodies a caller may send to create forms. The body names the definition, so access
 * cannot be decided before the body is read. Intake applications are not limited, because a limit would not stop them:
 * they can also send large bodies in saves, which are read before access is checked.
 */
export function largeCreates(limits: RateLimits): Guard {
  const limiter = limits.local({ name: 'large-creates', most: 30, window: 60_000 });
  const limit = rateLimit(limiter, ({ locals: { caller } }) => keyOf(caller));
  return {
    name: limit.name,
    check(request, response) {
      const isLarge = hasBody(request) && mayBeLarge(request);
      if (isLarge && !callerOf(response).roles.has(intakeRole)) return limit.check(request, response);
    },
  };
}

function keyOf(caller: Pick<Caller, 'issuer' | 'subject'> | undefined): string {
  return `${caller?.issuer}\0${caller?.subject}`;
}
