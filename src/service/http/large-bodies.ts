// Limits how many large request bodies are in memory at the same time. A request waits for a slot before its body is
// read, and holds the slot until its handler has finished, whatever it waits for in between (decision 0094). What a
// client then does not read of the response is limited by `unread-responses.ts`.
import type { IncomingMessage } from 'node:http';
import { createRequestQueue } from '../limits/request-queue.ts';
import { limitUnreadResponses, type UnreadResponses } from '../limits/unread-responses.ts';
import type { Metrics } from '../operations/metrics.ts';
import { type MinimumRate, usualRate } from './body-bytes.ts';
import { isOwnCall } from './own-calls.ts';
import { type HttpResponse, requesterOf } from './request-context.ts';

/** Maximum number of bytes, as sent, of all large bodies together. In memory, a body may take ten times its size. */
const memory = 32 * 1_048_576;
/** Number of large bodies that are always permitted, however large the app's limit is. */
const fewest = 8;

/** The minimum rate of a large body while another one waits for a slot that this body uses. */
const contestedRate: MinimumRate = { bytesPerSecond: 65_536, grace: 5_000 };

export interface LargeBodySlot {
  /** Returns the current minimum rate of the body. */
  rate(): MinimumRate;
  release(): void;
}

export interface LargeBodies {
  /**
   * Waits for a slot for a body that may be large. Throws Problem `busy`. Call this function after the guards of the
   * route.
   */
  admit(request: IncomingMessage, response: HttpResponse): Promise<LargeBodySlot>;
  unread: UnreadResponses;
}

/** `limit` is the maximum size of a body in bytes. */
export function createLargeBodies(limit: number, metrics: Pick<Metrics, 'queueRefusals'>): LargeBodies {
  const total = Math.max(fewest, Math.floor(memory / limit));
  const queue = createRequestQueue('large-bodies', metrics, {
    slots: { total, perTenant: total / 2, perMember: total / 4 },
    waiting: { total: 1_280, perTenant: 640, perMember: 320 },
    detail: 'Too many large requests are being processed.',
  });

  return {
    unread: limitUnreadResponses(limit, metrics),
    async admit(request, response) {
      // The body of a call of this process to itself belongs to another request that already holds a slot.
      if (isOwnCall(request)) return { rate: () => usualRate, release: () => undefined };
      const requester = requesterOf(response);
      const release = await queue.take(requester);
      return { rate: () => (queue.isWanted(requester) ? contestedRate : usualRate), release };
    },
  };
}
