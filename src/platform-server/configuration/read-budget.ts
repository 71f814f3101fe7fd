// Limits how fast the configuration of a tenant is read (decision 0090), because large responses occupy the main
// thread. Core configuration and core accounts, such as those of Formgate's services, have no such limit: the services
// have a budget of their own for each tenant (decision 0090), and a tenant's readers must not use it up.
import { createTokenBuckets } from '../../platform/token-buckets.ts';
import type { Clock } from '../../service/clock.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';

export interface ReadBudget {
  /** Throws Problem `busy` if the budget of the tenant is used up. */
  guard: Guard;
  /** Charges a response to the tenant. Anonymous callers have a budget of their own. */
  charge(response: HttpResponse, characters: number): void;
}

const mib = 1_048_576;
/** Characters of JSON. */
const rates = {
  share: { perSecond: 16 * mib, burst: 128 * mib },
  total: { perSecond: 64 * mib, burst: 512 * mib },
};

export function createReadBudget(clock: Clock): ReadBudget {
  const buckets = createTokenBuckets(clock, rates);
  const shareOf = ({ locals: { tenant, caller } }: HttpResponse) =>
    tenant && !caller?.isCore && `${caller ? 'callers' : 'anonymous'} ${tenant.id}`;
  return {
    guard: {
      name: 'readBudget',
      check(_request, response) {
        const share = shareOf(response);
        if (!share || buckets.left(share) > 0) return;
        throw new Problem('busy', 'Too much configuration of this tenant is being read. Try again.', {
          headers: { 'Retry-After': '5' },
        });
      },
    },
    charge(response, characters) {
      const share = shareOf(response);
      if (share) buckets.take(share, characters);
    },
  };
}
