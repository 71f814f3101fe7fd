// Shares the slots of a limited resource of this process (connections, workers) between tenants and their members.
// Neither a tenant nor a member can hold more than its share. Free slots go round-robin to waiting tenants, and within
// a tenant to its members. Queues have limits, and a claim that waits too long is refused.
import { Problem } from '../http/problem.ts';

/**
 * Names the tenant and the member that need a slot. A member, such as a person, a form or a register, shares the slots
 * of its tenant with other members.
 */
export interface Claim {
  tenant: string;
  member: string;
}

export interface FairQueueOptions {
  /** Number of slots: in total, and the maximum that one tenant and one member may hold at the same time. */
  slots: { total: number; perTenant: number; perMember: number };
  /**
   * Maximum number of claims that may wait: in total, for one tenant and for one member. 0 refuses a claim without
   * waiting. The first waiting claim of each tenant may exceed the total, so that others cannot keep a tenant out. The
   * number of tenants must therefore be limited: pass only the names of tenants that exist.
   */
  waiting: { total: number; perTenant: number; perMember: number };
  /** Maximum time in milliseconds that a claim waits. */
  waitMs: number;
  /** Detail of the problem `busy`: what is busy, and what to do. */
  detail: string;
  /** Value of the header Retry-After in a refusal. */
  retryAfterSeconds: number;
  /** Called once for each refused claim, for metrics. */
  onRefused?(reason: RefusalReason): void;
}

/** `full`: the queue is full. `late`: no slot was free within `waitMs`. */
export type RefusalReason = 'full' | 'late';

/** Releases the slot. Further calls do nothing. */
export type ReleaseSlot = () => void;

interface Waiting {
  claim: Claim;
  grant(release: ReleaseSlot): void;
}

/** Waiting claims by tenant, then by member. A tenant or member that was served moves to the end of its map. */
type WaitingClaims = Map<string, Map<string, Set<Waiting>>>;

export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #running = new Counts();
  readonly #waiting = new Counts();
  readonly #claims: WaitingClaims = new Map();

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.total;
  }

  get waiting(): number {
    return this.#waiting.total;
  }

  /** Returns a slot if one is free and the tenant and the member may hold another; otherwise undefined. Never waits. */
  tryTake(claim: Claim): ReleaseSlot | undefined {
    return this.#running.isBelow(claim, this.#options.slots) ? this.#start(claim) : undefined;
  }

  /** Waits for a slot. Rejects with Problem `busy` (503, Retry-After), or with the reason of the aborted signal. */
  take(claim: Claim, signal?: AbortSignal): Promise<ReleaseSlot> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const release = this.tryTake(claim);
    if (release) return Promise.resolve(release);
    if (!this.#mayWait(claim)) return Promise.reject(this.#refusal('full'));
    return this.#wait(claim, signal);
  }

  /** Returns whether the release of a slot of `held` would let a claim of another member start. */
  isWanted(held: Claim): boolean {
    const { total, perTenant, perMember } = this.#options.slots;
    for (const [tenant, members] of this.#claims) {
      const isSame = tenant === held.tenant;
      const limits = { total: total + 1, perTenant: perTenant + (isSame ? 1 : 0), perMember };
      for (const member of members.keys())
        if (!(isSame && member === held.member) && this.#running.isBelow({ tenant, member }, limits)) return true;
    }
    return false;
  }

  /** Runs `work` while it holds a slot. Rejects like `take`, or with the error of `work`. */
  async run<T>(claim: Claim, work: () => Promise<T>): Promise<T> {
    const release = await this.take(claim);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #mayWait(claim: Claim): boolean {
    const { waiting } = this.#options;
    const total = this.#claims.has(claim.tenant) ? waiting.total : Number.POSITIVE_INFINITY;
    return this.#waiting.isBelow(claim, { ...waiting, total });
  }

  #wait(claim: Claim, signal: AbortSignal | undefined): Promise<ReleaseSlot> {
    const { promise, resolve, reject } = Promise.withResolvers<ReleaseSlot>();
    const leave = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      this.#remove(waiting);
    };
    const waiting: Waiting = {
      claim,
      grant(release) {
        leave();
        resolve(release);
      },
    };
    const onAbort = () => {
      leave();
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      leave();
      reject(this.#refusal('late'));
    }, this.#options.waitMs);
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#add(waiting);
    return promise;
  }

  #start(claim: Claim): ReleaseSlot {
    this.#running.add(claim, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running.add(claim, -1);
      this.#grantNext();
    };
  }

  /** Grants one slot, because a released slot can serve only one waiting claim. */
  #grantNext(): void {
    for (const [tenant, members] of this.#claims)
      for (const [member, queue] of members) {
        const claim = { tenant, member };
        const [next] = queue;
        if (!next || !this.#running.isBelow(claim, this.#options.slots)) continue;
        next.grant(this.#start(claim));
        moveToEnd(members, member);
        moveToEnd(this.#claims, tenant);
        return;
      }
  }

  #add(waiting: Waiting): void {
    const { tenant, member } = waiting.claim;
    const members = this.#claims.get(tenant) ?? new Map<string, Set<Waiting>>();
    const queue = members.get(member) ?? new Set<Waiting>();
    this.#claims.set(tenant, members.set(member, queue.add(waiting)));
    this.#waiting.add(waiting.claim, 1);
  }

  #remove(waiting: Waiting): void {
    const { tenant, member } = waiting.claim;
    const members = this.#claims.get(tenant);
    const queue = members?.get(member);
    if (!queue?.delete(waiting)) return;
    if (queue.size === 0) members?.delete(member);
    if (members?.size === 0) this.#claims.delete(tenant);
    this.#waiting.add(waiting.claim, -1);
  }

  #refusal(reason: RefusalReason): Problem {
    const { detail, retryAfterSeconds, onRefused } = this.#options;
    onRefused?.(reason);
    return new Problem('busy', detail, { headers: { 'Retry-After': String(retryAfterSeconds) } });
  }
}

interface TenantCounts {
  count: number;
  members: Map<string, number>;
}

/**
 * Maximum number of entries kept for idle tenants and members. A kept entry saves creating a new one for the next
 * claim.
 */
const idleKeys = 1_000;

/** Counts claims in total, by tenant and by member. */
class Counts {
  total = 0;
  readonly #tenants = new Map<string, TenantCounts>();
  #idle = 0;

  isBelow({ tenant, member }: Claim, limits: { total: number; perTenant: number; perMember: number }): boolean {
    const counts = this.#tenants.get(tenant);
    return (
      this.total < limits.total &&
      (counts?.count ?? 0) < limits.perTenant &&
      (counts?.members.get(member) ?? 0) < limits.perMember
    );
  }

  add({ tenant, member }: Claim, change: 1 | -1): void {
    let counts = this.#tenants.get(tenant);
    if (!counts) {
      counts = { count: 0, members: new Map() };
      this.#tenants.set(tenant, counts);
    }
    const ofMember = (counts.members.get(member) ?? 0) + change;
    counts.members.set(member, ofMember);
    counts.count += change;
    this.total += change;
    if (ofMember === 0) this.#noteIdle();
  }

  /**
   * Counts how often a member became idle. The count is an upper bound on the number of idle members. When it reaches
   * `idleKeys`, removes the idle entries.
   */
  #noteIdle(): void {
    this.#idle += 1;
    if (this.#idle < idleKeys) return;
    this.#idle = 0;
    for (const [tenant, { count, members }] of this.#tenants) {
      if (count === 0) this.#tenants.delete(tenant);
      else for (const [member, held] of members) if (held === 0) members.delete(member);
    }
  }
}

function moveToEnd<T>(map: Map<string, T>, key: string): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}
