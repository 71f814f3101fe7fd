// Keeps a tenant with very many due forms from delaying the expiry of other tenants' forms. The rate of the expiry is
// limited, so the forms of such a tenant can take hours. A run therefore processes the forms of all other tenants
// first, and then a share of each such tenant in turn.
import type { Policy } from '../src/forms/expiry/expiry.ts';
import { type Position, type Stage, stages } from '../src/forms/expiry/store.ts';
import type { ExpiryOutcome, PacedOptions } from './expiry-options.ts';
import { createFailures, inChunks, policiesOf, takeNext } from './stages.ts';

/**
 * A tenant has a backlog if it has more due forms than this in one stage. It is also the number of forms of such a
 * tenant that are processed in turn: while requests are served, this takes ten seconds.
 */
const share = 10_000;

export interface Tenants {
  /** The policies of all tenants without a backlog. */
  ordinary: Policy[];
  /** For each tenant with a backlog, its policies. */
  backlogs: Policy[][];
}

/** Finds the tenants that have a backlog. */
export async function splitByBacklog(all: readonly Policy[], { pool, store, clock }: PacedOptions): Promise<Tenants> {
  const large = new Map<string, Policy[]>();
  for (const stage of stages) {
    const due = new Map<string, number>();
    for (const policies of inChunks(policiesOf(stage, all)))
      for (const { tenantId, count } of await store.countByTenant(pool, stage, {
        ...{ policies, now: clock(), most: share + 1 },
      }))
        due.set(tenantId, (due.get(tenantId) ?? 0) + count);
    for (const [tenantId, count] of due) if (count > share) large.set(tenantId, []);
  }
  const ordinary = all.filter((policy) => !large.get(policy.tenantId)?.push(policy));
  return { ordinary, backlogs: [...large.values()] };
}

/** A stage for some definitions of a tenant. */
interface Part {
  stage: Stage;
  position: Position;
}

/** Processes the forms of tenants with a backlog. If a batch fails, continues as `walk` does, and then rejects. */
export async function walkBacklogs(
  backlogs: readonly Policy[][],
  options: PacedOptions,
  outcome: ExpiryOutcome,
): Promise<void> {
  const failed = createFailures();
  let open = backlogs.map(partsOf);
  while (open.length > 0 && !options.signal.aborted) {
    for (const parts of open) await takeShare(parts);
    open = open.filter((parts) => parts.length > 0);
  }
  failed.throwFirst();

  /** Processes forms of one tenant, and removes the finished parts. */
  async function takeShare(parts: Part[]): Promise<void> {
    options.progress.begin(parts[0]?.stage ?? '', undefined);
    for (let left = share; left > 0 && parts[0] && !options.signal.aborted; ) {
      const { walked, next } = await takeNext({ ...parts[0], most: left }, { options, outcome, failed });
      left -= Math.max(walked, 1);
      if (next) parts[0].position = next;
      else parts.shift();
    }
    options.progress.end();
  }
}

const partsOf = (all: Policy[]): Part[] =>
  stages.flatMap((stage) =>
    [...inChunks(policiesOf(stage, all))].map((policies) => ({ stage, position: { policies } })),
  );
