// Limits the memory of responses that clients do not read (decision 0094). Node keeps what the kernel does not take,
// for as long as the connection is open: a client that asks for its form over and over, and reads nothing, would use
// all memory.
import type { IncomingMessage } from 'node:http';
import { isOwnCall } from '../http/own-calls.ts';
import { Problem } from '../http/problem.ts';
import { type HttpResponse, requesterOf } from '../http/request-context.ts';
import type { Metrics } from '../operations/metrics.ts';
import type { Requester } from './fair-queue.ts';

/** Responses of which fewer bytes are unread are not counted. */
const smallest = 16_384;
const mebibyte = 1_048_576;
/**
 * Maximum unread bytes for which further requests are accepted: `bytes`, or the size of `bodies` bodies of the largest
 * size if that is more.
 */
const shares = {
  bytes: { perMember: 16 * mebibyte, perTenant: 32 * mebibyte, total: 64 * mebibyte },
  bodies: { perMember: 8, perTenant: 16, total: 32 },
};
/** A member with fewer unread bytes may make requests although its tenant, or all members, have too many. */
const alwaysFree = mebibyte;

export interface UnreadResponses {
  /** Throws Problem `busy` if the person, account or client network of the request has too many unread bytes. */
  refuse(request: IncomingMessage, response: HttpResponse): void;
  /**
   * Counts the unread bytes of a response. Call this function when a handler has sent it. Requests that ran at the same
   * time may exceed the limit of `refuse`. If they reach twice that limit, this function closes the connections of the
   * oldest responses: of the same member, or of the largest member of the tenant or of the largest tenant.
   */
  note(request: IncomingMessage, response: HttpResponse): void;
}

/** `bodyLimit` is the maximum size of a request body in bytes, and so of most responses. */
export function limitUnreadResponses(
  bodyLimit: number,
  { queueRefusals }: Pick<Metrics, 'queueRefusals'>,
): UnreadResponses {
  const bodies = new UnreadBodies(bodyLimit);
  const count = () => queueRefusals.inc({ queue: 'unread-responses', reason: 'full' });
  return {
    refuse(request, response) {
      if (bodies.bytes === 0 || isOwnCall(request) || !bodies.isFull(requesterOf(response))) return;
      count();
      const detail = 'Too many bytes of responses to earlier requests have not been read.';
      throw new Problem('busy', detail, { headers: { 'Retry-After': '5' } });
    },
    note(request, response) {
      // Node counts a partly sent buffer as unsent.
      const bytes = response.writableLength;
      // A call of this process to itself is read at once, and another request waits for its result.
      if (bytes < smallest || isOwnCall(request)) return;
      const { sharedBody } = response.locals;
      const requester = requesterOf(response);
      // Many people may read a shared body. It belongs to their tenant.
      const body = bodies.add(
        sharedBody ?? response,
        sharedBody ? { ...requester, member: '' } : requester,
        bytes,
        request,
      );
      response.once('close', () => bodies.remove(body, request));
      for (let excess = bodies.excess(body.requester); excess; excess = bodies.excess(body.requester)) {
        count();
        for (const reader of excess.readers) {
          bodies.remove(excess, reader);
          reader.socket.destroy();
        }
      }
    },
  };
}

interface UnreadBody {
  /** The body, if responses share it; else the response. */
  key: object;
  requester: Requester;
  bytes: number;
  readers: Set<IncomingMessage>;
}

interface Member {
  bytes: number;
  /** Oldest first. */
  bodies: Set<UnreadBody>;
}

interface Tenant {
  bytes: number;
  members: Map<string, Member>;
}

class UnreadBodies {
  bytes = 0;
  readonly #bodyLimit: number;
  readonly #bodies = new Map<object, UnreadBody>();
  readonly #tenants = new Map<string, Tenant>();

  constructor(bodyLimit: number) {
    this.#bodyLimit = bodyLimit;
  }

  add(key: object, requester: Requester, bytes: number, reader: IncomingMessage): UnreadBody {
    const known = this.#bodies.get(key);
    if (known) {
      known.readers.add(reader);
      return known;
    }
    const body: UnreadBody = { key, requester, bytes, readers: new Set([reader]) };
    const tenant = this.#tenants.get(requester.tenant) ?? { bytes: 0, members: new Map<string, Member>() };
    const member = tenant.members.get(requester.member) ?? { bytes: 0, bodies: new Set<UnreadBody>() };
    this.#tenants.set(requester.tenant, tenant);
    tenant.members.set(requester.member, member);
    this.#bodies.set(key, body);
    member.bodies.add(body);
    for (const share of [this, tenant, member]) share.bytes += bytes;
    return body;
  }

  /** Does nothing if the reader was removed before. */
  remove(body: UnreadBody, reader: IncomingMessage): void {
    if (!body.readers.delete(reader) || body.readers.size > 0) return;
    const { tenant, member } = this.#of(body.requester);
    if (!tenant || !member) return;
    this.#bodies.delete(body.key);
    member.bodies.delete(body);
    for (const share of [this, tenant, member]) share.bytes -= body.bytes;
    if (member.bodies.size === 0) tenant.members.delete(body.requester.member);
    if (tenant.members.size === 0) this.#tenants.delete(body.requester.tenant);
  }

  isFull(requester: Requester): boolean {
    const { tenant, member } = this.#of(requester);
    if (!tenant || !member || member.bytes < alwaysFree) return false;
    const { perMember, perTenant, total } = this.#most(1);
    return member.bytes >= perMember || tenant.bytes >= perTenant || this.bytes >= total;
  }

  /** Returns a body to give up, or undefined if no limit is exceeded. `requester` is that of the latest body. */
  excess(requester: Requester): UnreadBody | undefined {
    const { tenant, member } = this.#of(requester);
    const { perMember, perTenant, total } = this.#most(2);
    // A single response is never given up for its own size.
    if (member && member.bytes > perMember && member.bodies.size > 1) return oldest(member);
    if (tenant && tenant.bytes > perTenant) return oldest(largest(tenant.members));
    return this.bytes > total ? oldest(largest(largest(this.#tenants)?.members)) : undefined;
  }

  #of({ tenant, member }: Requester): { tenant: Tenant | undefined; member: Member | undefined } {
    const ofTenant = this.#tenants.get(tenant);
    return { tenant: ofTenant, member: ofTenant?.members.get(member) };
  }

  #most(factor: number): typeof shares.bytes {
    const of = (share: keyof typeof shares.bytes) =>
      factor * Math.max(shares.bytes[share], shares.bodies[share] * this.#bodyLimit);
    return { perMember: of('perMember'), perTenant: of('perTenant'), total: of('total') };
  }
}

function oldest(member: Member | undefined): UnreadBody | undefined {
  return member?.bodies.values().next().value;
}

function largest<S extends { bytes: number }>(shares: ReadonlyMap<string, S> = new Map()): S | undefined {
  let found: S | undefined;
  for (const share of shares.values()) if (!found || share.bytes > found.bytes) found = share;
  return found;
}
