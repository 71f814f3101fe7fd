// Decides which sender address a tenant may use: the operator's own, or one in a domain that the operator lists for the
// tenant. Other addresses in the operator's domain may belong to other tenants, or to the operator's staff. An address
// that is not allowed is rejected when a tenant configures it. If an older configuration contains such an address, mail
// is sent from the operator's address.
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
 * `operator` is the operator's sender address. `domainsOf` returns the domains listed for a tenant, in lower case.
 */
export function createSenderPolicy(options: {
  operator: string;
  domainsOf(tenant: string): Promise<readonly string[]>;
}): SenderPolicy {
  async function isAllowed(tenant: string, address: string): Promise<boolean> {
    if (address.toLowerCase() === options.operator.toLowerCase()) return true;
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
    return (await options.domainsOf(tenant)).includes(domain);
  }

  return {
    async senderOf(tenant, chosen) {
      return chosen !== undefined && (await isAllowed(tenant, chosen)) ? chosen : undefined;
    },
    async refuse(tenant, document, before) {
      const address = senderOf(document);
      if (address === undefined || address === senderOf(before) || (await isAllowed(tenant, address))) return undefined;
      const detail = 'is not an address that this tenant may send from; the operator can allow its domain in the seed';
      return { pointer: '/email/fromEmail', detail };
    },
  };
}
