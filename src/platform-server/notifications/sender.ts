// Which address a tenant may send its mail from: one of the operator's domain, or of a domain that the operator lists for
// the tenant. Any other is refused when it is written, and an older one is not used: the mail has the operator's sender.
import type { FieldError } from '../../service/http/problem.ts';
import { senderOf } from './notification-type.ts';

export interface SenderPolicy {
  /** The sender of the tenant's mail; undefined for the operator's. */
  senderOf(tenant: string, document: unknown): Promise<string | undefined>;
  /** What is wrong with a new sender in a tenant's document. One that stood there before is not looked at. */
  refuse(tenant: string, document: unknown, before: unknown): Promise<FieldError | undefined>;
}

/** `domain`: of the operator's own sender. `domainsOf`: those listed for a tenant, in lower case. */
export function createSenderPolicy(options: {
  domain: string;
  domainsOf(tenant: string): Promise<readonly string[]>;
}): SenderPolicy {
  async function isAllowed(tenant: string, address: string): Promise<boolean> {
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
    return domain === options.domain.toLowerCase() || (await options.domainsOf(tenant)).includes(domain);
  }

  return {
    async senderOf(tenant, document) {
      const address = senderOf(document);
      return address !== undefined && (await isAllowed(tenant, address)) ? address : undefined;
    },
    async refuse(tenant, document, before) {
      const address = senderOf(document);
      if (address === undefined || address === senderOf(before) || (await isAllowed(tenant, address))) return undefined;
      const detail = 'is of a domain that this tenant may not send from; the operator lists domains in the seed';
      return { pointer: '/email/fromEmail', detail };
    },
  };
}
