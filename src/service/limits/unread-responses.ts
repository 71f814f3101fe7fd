// Limits the memory of responses that clients do not read. Node keeps what the kernel does not take, for as long as the
// connection is open: a client that asks for its form over and over, and reads nothing, would use all memory.
import type { IncomingMessage } from 'node:http';
import { isOwnCall } from '../http/own-calls.ts';
import { claimOf, type HttpResponse } from '../http/request-context.ts';
import type { Metrics } from '../operations/metrics.ts';
import type { Claim } from './fair-queue.ts';

/** Responses of which fewer bytes are unread are not counted. */
const smallest = 16_384;
const mebibyte = 1_048_576;
/** Maximum number of unread bytes. */
const most = { total: 64 * mebibyte, perTenant: 32 * mebibyte, perMember: 16 * mebibyte };

/**
 * Returns a function to call when a handler has sent its response. If too many bytes are unread, it closes the
 * connection of the response that has been unread for the longest time: of the same person, account or client network;
 * of the member of the tenant that holds the most bytes; or of such a member in the tenant that holds the most.
 */
export function limitUnreadResponses({ queueRefusals }: Pick<Metrics, 'queueRefusals'>) {
  const unread = new UnreadResponses();
  return (request: IncomingMessage, response: HttpResponse): void => {
    // Node counts a partly sent buffer as unsent.
    const bytes = response.writableLength;
    // A call of this process to itself is read at once, and another request waits for its result.
    if (bytes < smallest || response.locals.hasSharedBody || isOwnCall(request)) return;
    const claim = claimOf(response);
    unread.add(claim, request, bytes);
    response.once('close', () => unread.remove(claim, request));
    for (let excess = unread.excess(claim); excess; excess = unread.excess(claim)) {
      unread.remove(excess.claim, excess.request);
      queueRefusals.inc({ queue: 'unread-responses', reason: 'full' });
      excess.request.socket.destroy();
    }
  };
}

interface Member {
  bytes: number;
  /** The number of unread bytes by request, oldest first. */
  requests: Map<IncomingMessage, number>;
}

interface Tenant {
  bytes: number;
  members: Map<string, Member>;
}

class UnreadResponses {
  #bytes = 0;
  readonly #tenants = new Map<string, Tenant>();

  add({ tenant, member }: Claim, request: IncomingMessage, bytes: number): void {
    const ofTenant = this.#tenants.get(tenant) ?? { bytes: 0, members: new Map<string, Member>() };
    const ofMember = ofTenant.members.get(member) ?? { bytes: 0, requests: new Map<IncomingMessage, number>() };
    this.#tenants.set(tenant, ofTenant);
    ofTenant.members.set(member, ofMember);
    ofMember.requests.set(request, bytes);
    for (const share of [ofTenant, ofMember]) share.bytes += bytes;
    this.#bytes += bytes;
  }

  /** Does nothing if the request was removed before. */
  remove({ tenant, member }: Claim, request: IncomingMessage): void {
    const ofTenant = this.#tenants.get(tenant);
    const ofMember = ofTenant?.members.get(member);
    const bytes = ofMember?.requests.get(request);
    if (!ofTenant || !ofMember || bytes === undefined) return;
    ofMember.requests.delete(request);
    for (const share of [ofTenant, ofMember]) share.bytes -= bytes;
    this.#bytes -= bytes;
    if (ofMember.requests.size === 0) ofTenant.members.delete(member);
    if (ofTenant.members.size === 0) this.#tenants.delete(tenant);
  }

  /** Returns the request to end, or undefined if no limit is exceeded. `claim` is that of the latest response. */
  excess(claim: Claim): { claim: Claim; request: IncomingMessage } | undefined {
    const ofTenant = this.#tenants.get(claim.tenant);
    if ((ofTenant?.members.get(claim.member)?.bytes ?? 0) > most.perMember) return this.#oldest(claim);
    const isTenantOver = (ofTenant?.bytes ?? 0) > most.perTenant;
    if (!isTenantOver && this.#bytes <= most.total) return undefined;
    const tenant = isTenantOver ? claim.tenant : largest(this.#tenants);
    return this.#oldest({ tenant, member: largest(this.#tenants.get(tenant)?.members) });
  }

  #oldest(claim: Claim): { claim: Claim; request: IncomingMessage } | undefined {
    const [request] = this.#tenants.get(claim.tenant)?.members.get(claim.member)?.requests.keys() ?? [];
    return request && { claim, request };
  }
}

function largest(shares: ReadonlyMap<string, { bytes: number }> = new Map()): string {
  let [found, mostBytes] = ['', 0];
  for (const [key, { bytes }] of shares) if (bytes > mostBytes) [found, mostBytes] = [key, bytes];
  return found;
}
