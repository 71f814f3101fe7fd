// Decides which sender address a tenant may use: one in the operator's domain, or in a domain that the operator lists
// for the tenant. Any other address is rejected when a tenant configures it. If an older configuration contains such an
// address, mail is sent from the operator's address.
import type { FieldError } from '../../service/http/problem.ts';
import { senderOf } from './notification-type.ts';

export interface SenderPolicy {
  /**
   * Returns the tenant's chosen sender address if it is allowed, otherwise undefined: the operator's address is then
   * used.
   */
  senderOf(tenant: string, chosen: string | undefined): Promise<string | undefined>;
  /** Returns the reason if the sender in a tenant's document is rejected. An unchanged sender is not checked. */
  refuse(tenant: string, document: unknown, before: unknown): Promise<FieldError | undefined>;
}

/**
 * `domain` is the domain of the operator's sender. `domainsOf` returns the domains listed for a tenant, in lower case.
 */
export function createSenderPolicy(options: {
  domain: string;
  domainsOf(tenant: string): Promise<readonly string[]>;
}): SenderPolicy {
  async function isAllowed(tenant: string, address: string): Promise<boolean> {
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
    return domain === options.domain.toLowerCase() || (await options.domainsOf(tenant)).includes(domain);
  }

  return {
    async senderOf(tenant, chosen) {
      return chosen !== undefined && (await isAllowed(tenant, chosen)) ? chosen : undefined;
    },
    async refuse(tenant, document, before) {
      const address = senderOf(document);
      if (address === undefined || address === senderOf(before) || (await isAllowed(tenant, address))) return undefined;
      const detail = 'has a domain that this tenant may not send from; the operator can allow domains in the seed';
      return { pointer: '/email/fromEmail', detail };
    },
  };
}
