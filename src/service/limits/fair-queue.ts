// Shares the slots of a limited resource of this process (connections, workers) between tenants and their members.
// Neither a tenant nor a member can hold more than its share. Free slots go round-robin to waiting tenants, and within
// a tenant to its members. Queues have limits, and a request that waits too long is refused.
import { Problem } from '../http/problem.ts';

/**
 * Names the tenant and the member that need a slot. A member, such as a person, a form or a register, shares the slots
 * of its tenant with other members.
 */
export interface Requester {
  tenant: string;
  member: string;
}

export interface FairQueueOptions {
  /** Number of slots: in total, and the maximum that one tenant and one member may hold at the same time. */
  slots: { total: number; perTenant: number; perMember: number };
  /**
   * Maximum number of requests that may wait: in total, for one tenant and for one member. 0 refuses a request without
   * waiting. The first waiting request of each tenant may exceed the total, so that others cannot keep a tenant out.
   * The number of tenants must therefore be limited: pass only the names of tenants that exist.
   */
  waiting: { total: number; perTenant: number; perMember: number };
  /** Maximum time in milliseconds that a request waits. */
  waitMs: number;
  /** Detail of the problem `busy`: what is busy, and what to do. */
  detail: string;
  /** Value of the header Retry-After in a refusal. */
  retryAfterSeconds: number;
  /** Called once for each refused request, for metrics. */
  onRefused?(reason: RefusalReason): void;
}

/** `full`: the queue is full. `late`: no slot was free within `waitMs`. */
export type RefusalReason = 'full' | 'late';

/** Releases the slot. Further calls do nothing. */
export type ReleaseSlot = () => void;

interface Waiting {
  requester: Requester;
  grant(release: ReleaseSlot): void;
}

/** Waiting requests by tenant, then by member. A tenant or member that was served moves to the end of its map. */
type WaitingRequests = Map<string, Map<string, Set<Waiting>>>;

export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #running = new Counts();
  readonly #waiting = new Counts();
  readonly #requests: WaitingRequests = new Map();

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
  tryTake(requester: Requester): ReleaseSlot | undefined {
    return this.#running.isBelow(requester, this.#options.slots) ? this.#start(requester) : undefined;
  }

  /** Waits for a slot. Rejects with Problem `busy` (503, Retry-After), or with the reason of the aborted signal. */
  take(requester: Requester, signal?: AbortSignal): Promise<ReleaseSlot> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const release = this.tryTake(requester);
    if (release) return Promise.resolve(release);
    if (!this.#mayWait(requester)) return Promise.reject(this.#refusal('full'));
    return this.#wait(requester, signal);
  }

  /** Returns whether the release of a slot of `holder` would let a request of another member start. */
  isWanted(holder: Requester): boolean {
    const { total, perTenant, perMember } = this.#options.slots;
    for (const [tenant, members] of this.#requests) {
      const isSame = tenant === holder.tenant;
      const limits = { total: total + 1, perTenant: perTenant + (isSame ? 1 : 0), perMember };
      for (const member of members.keys())
        if (!(isSame && member === holder.member) && this.#running.isBelow({ tenant, member }, limits)) return true;
    }
    return false;
  }

  /** Runs `work` while it holds a slot. Rejects like `take`, or with the error of `work`. */
  async run<T>(requester: Requester, work: () => Promise<T>): Promise<T> {
    const release = await this.take(requester);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #mayWait(requester: Requester): boolean {
    const { waiting } = this.#options;
    const total = this.#requests.has(requester.tenant) ? waiting.total : Number.POSITIVE_INFINITY;
    return this.#waiting.isBelow(requester, { ...waiting, total });
  }

  #wait(requester: Requester, signal: AbortSignal | undefined): Promise<ReleaseSlot> {
    const { promise, resolve, reject } = Promise.withResolvers<ReleaseSlot>();
    const leave = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      this.#remove(waiting);
    };
    const waiting: Waiting = {
      requester,
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

  #start(requester: Requester): ReleaseSlot {
    this.#running.add(requester, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running.add(requester, -1);
      this.#grantNext();
    };
  }

  /** Grants one slot, because a released slot can serve only one waiting request. */
  #grantNext(): void {
    for (const [tenant, members] of this.#requests)
      for (const [member, queue] of members) {
        const requester = { tenant, member };
        const [next] = queue;
        if (!next || !this.#running.isBelow(requester, this.#options.slots)) continue;
        next.grant(this.#start(requester));
        moveToEnd(members, member);
        moveToEnd(this.#requests, tenant);
        return;
      }
  }

  #add(waiting: Waiting): void {
    const { tenant, member } = waiting.requester;
    const members = this.#requests.get(tenant) ?? new Map<string, Set<Waiting>>();
    const queue = members.get(member) ?? new Set<Waiting>();
    this.#requests.set(tenant, members.set(member, queue.add(waiting)));
    this.#waiting.add(waiting.requester, 1);
  }

  #remove(waiting: Waiting): void {
    const { tenant, member } = waiting.requester;
    const members = this.#requests.get(tenant);
    const queue = members?.get(member);
    if (!queue?.delete(waiting)) return;
    if (queue.size === 0) members?.delete(member);
    if (members?.size === 0) this.#requests.delete(tenant);
    this.#waiting.add(waiting.requester, -1);
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
 * request.
 */
const idleKeys = 1_000;

/** Counts requests in total, by tenant and by member. */
class Counts {
  total = 0;
  readonly #tenants = new Map<string, TenantCounts>();
  #idle = 0;

  isBelow({ tenant, member }: Requester, limits: { total: number; perTenant: number; perMember: number }): boolean {
    const counts = this.#tenants.get(tenant);
    return (
      this.total < limits.total &&
      (counts?.count ?? 0) < limits.perTenant &&
      (counts?.members.get(member) ?? 0) < limits.perMember
    );
  }

  add({ tenant, member }: Requester, change: 1 | -1): void {
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
