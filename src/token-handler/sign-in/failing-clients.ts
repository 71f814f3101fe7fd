// Finds clients whose sign-ins keep failing, for example because their secret was changed at the identity provider.
// Remembers only the times of the last failures, for a limited number of clients.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';

export interface SignInClient {
  /** URN of the tenant. */
  tenantId: string;
  clientId: string;
}

/** A client counts as failing after this many failed sign-ins within `period` ms without a successful sign-in. */
const failures = 5;
const period = 15 * 60_000;
const mostClients = 1_000;

interface Failures {
  /** Times of the last failed sign-ins, in milliseconds since 1970, oldest first. */
  times: number[];
  isReported: boolean;
}

export function createFailingClients({ clock, log }: { clock: Clock; log: Logger }) {
  const records = new LRUCache<string, Failures>({ max: mostClients });
  const keyOf = ({ tenantId, clientId }: SignInClient) => `${tenantId} ${clientId}`;
  const isFailing = ({ times }: Failures) => {
    const [oldest] = times;
    return times.length === failures && oldest !== undefined && clock().getTime() - oldest <= period;
  };
  return {
    /** Records a failed sign-in. Logs one line, with `reason`, when the client begins to count as failing. */
    failed(client: SignInClient, reason: string): void {
      const { times = [], isReported = false } = records.get(keyOf(client)) ?? {};
      const record = { times: [...times, clock().getTime()].slice(-failures), isReported };
      records.set(keyOf(client), record);
      if (!isFailing(record)) record.isReported = false;
      else if (!record.isReported) {
        record.isReported = true;
        const about = { tenant: client.tenantId, client: client.clientId };
        log.warn({ ...about, reason, failures }, 'sign-ins of a client keep failing');
      }
    },
    succeeded(client: SignInClient): void {
      const record = records.peek(keyOf(client));
      if (!record) return;
      records.delete(keyOf(client));
      const about = { tenant: client.tenantId, client: client.clientId };
      if (record.isReported) log.info(about, 'sign-ins of a client succeed again');
    },
    count: (): number => [...records.values()].filter(isFailing).length,
  };
}
