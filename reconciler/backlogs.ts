// Keeps a tenant with very many due forms from delaying the expiry of other tenants' forms. The rate of the expiry is
// limited, so the forms of such a tenant can take hours. A run therefore processes the forms of all other tenants
// first, and then some forms of each such tenant in turn. If the events of these forms are written faster than the
// dispatchers deliver them, it pauses, and a later run continues.
import type { Policy } from '../src/forms/expiry/expiry.ts';
import { type Position, type Stage, stages } from '../src/forms/expiry/store.ts';
import type { ExpiryOutcome, PacedOptions } from './expiry-options.ts';
import { createFailures, inChunks, policiesOf, takeNext } from './stages.ts';

/**
 * A tenant has a backlog if one stage has to scan more of its forms than this. The same number of forms is scanned for
 * such a tenant before the next tenant follows. While requests are served, 10,000 changes take ten seconds.
 */
const share = 10_000;
/**
 * Number of due but undelivered events with which the run takes no forms of the tenants that wrote many of them, and of
 * each other tenant only its first share, so that no tenant can stop the expiry of the others. To find the tenants
 * whose events come first, a dispatcher reads all due events. With 8 million, this would exceed the statement timeout
 * (0087).
 */
const mostUndelivered = 1_000_000;
/** A tenant has written many of these events if it has more than this part of the number. */
const largePart = 0.01;
/** Maximum number of tenants that the log names. */
const mostNamed = 10;

export interface Tenants {
  /** The policies of all tenants without a backlog. */
  ordinary: Policy[];
  /** For each tenant with a backlog, its policies. */
  backlogs: Policy[][];
}

/** Finds the tenants that have a backlog, and logs their number and some of them. */
export async function splitByBacklog(all: readonly Policy[], options: PacedOptions): Promise<Tenants> {
  const large = new Set<string>();
  for (const stage of stages)
    for (const [tenantId, count] of await countScanned(stage, all, options)) if (count > share) large.add(tenantId);
  if (large.size > 0)
    options.log.info(
      { count: large.size, tenants: [...large].slice(0, mostNamed) },
      'tenants with very many due forms',
    );
  const isLarge = ({ tenantId }: Policy) => large.has(tenantId);
  return {
    ordinary: all.filter((policy) => !isLarge(policy)),
    backlogs: [...Map.groupBy(all.filter(isLarge), ({ tenantId }) => tenantId).values()],
  };
}

/** Returns how many forms of each tenant the stage has to scan. Large numbers are not exact. */
async function countScanned(stage: Stage, all: readonly Policy[], { pool, store, clock }: PacedOptions) {
  const counts = new Map<string, number>();
  for (const policies of inChunks(policiesOf(stage, all))) {
    const found = await store.countByTenant(pool, stage, { policies, now: clock(), most: share + 1 });
    for (const { tenantId, count } of found) counts.set(tenantId, (counts.get(tenantId) ?? 0) + count);
  }
  return counts;
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
  const isPaused = createPauses(options);
  let open = backlogs.map(partsOf);
  options.progress.begin('backlogs', undefined);
  for (let round = 0; open.length > 0 && !options.signal.aborted; round += 1) {
    const left: Part[][] = [];
    for (const parts of open) {
      if (await isPaused(parts, round)) continue;
      await takeShare(parts);
      if (parts.length > 0) left.push(parts);
    }
    open = left;
  }
  options.progress.end();
  failed.throwFirst();

  /** Processes forms of one tenant, and removes the finished parts. */
  async function takeShare(parts: Part[]): Promise<void> {
    for (let left = share; left > 0 && parts[0] && !options.signal.aborted; ) {
      const { walked, next } = await takeNext({ ...parts[0], most: left }, { options, outcome, failed });
      left -= Math.max(walked, 1);
      if (next) parts[0].position = next;
      else parts.shift();
    }
  }
}

/**
 * Returns a function that is true, and logs it, if too many events are undelivered, and the tenant of the forms has
 * written many of them or had its first share in this run.
 */
function createPauses({ writer, store, clock, log, mostUndelivered: most = mostUndelivered }: PacedOptions) {
  return async ([first]: Part[], round: number): Promise<boolean> => {
    if (writer.dryRun) return false;
    const counts = await writer.transact((client) => store.countUndelivered(client, clock()));
    if (counts.reduce((sum, { count }) => sum + count, 0) < most) return false;
    const tenant = first?.position.policies[0]?.tenantId;
    const own = counts.find(({ tenantId }) => tenantId === tenant)?.count ?? 0;
    if (round === 0 && own <= most * largePart) return false;
    log.warn({ tenant, most }, 'expiry of a backlog paused: too many events are undelivered');
    return true;
  };
}

const partsOf = (all: Policy[]): Part[] =>
  stages.flatMap((stage) =>
    [...inChunks(policiesOf(stage, all))].map((policies) => ({ stage, position: { policies } })),
  );
