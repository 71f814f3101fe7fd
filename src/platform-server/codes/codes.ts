// Issues and checks codes. A code works once, within ten minutes. A code becomes void after ten failed checks, or when
// a new code is issued for the same address. A check with an idempotency key can be repeated, because its response may
// have been lost.
import type { Clock } from '../../service/clock.ts';
import type { TenantPool } from '../tenant-pool.ts';
import { type CodePlace, codeLifetime, digestCheck, digestCode, generateCode, judgeCode } from './code.ts';
import { createCodeStore } from './store.ts';

/**
 * Codes that may be sent to an address of a tenant. The form service itself allows half as many. Its codes are
 * therefore never refused here, even if the clocks of the two services differ.
 */
export const codeLimit = { name: 'address-codes', most: 10, window: 3_600_000 };

export interface IssuedCode {
  /** The code in plain text. */
  code: string;
  /** Makes the previous code valid again. Call this function only if the new code certainly was not sent. */
  withdraw(): Promise<void>;
}

export interface Codes {
  /** Issues a new code for this address. The new code replaces the previous one. */
  issue(tenant: string, to: CodePlace): Promise<IssuedCode>;
  /**
   * Resolves to true if the code is correct. After that, only a check with the same idempotency key can use the code
   * again. Resolves to undefined if no code was ever sent to this address.
   */
  check(tenant: string, at: CodePlace, code: string, idempotencyKey?: string): Promise<boolean | undefined>;
}

export interface CodesOptions {
  tenantPool: TenantPool;
  /** The key of the HMACs of codes. */
  key: string;
  clock: Clock;
  /** True if a code works only once. False if it works until it expires. */
  workOnce: boolean;
}

export function createCodes({ tenantPool, key, clock, workOnce }: CodesOptions): Codes {
  return {
    async issue(tenant, to) {
      const code = generateCode();
      const expires = new Date(clock().getTime() + codeLifetime);
      const digest = digestCode(key, to, code);
      const former = await tenantPool.transaction(tenant, async (transaction) => {
        const store = createCodeStore(transaction);
        const sent = await store.lock(to);
        await store.replace(to, digest, expires);
        return sent;
      });
      return { code, withdraw: () => createCodeStore(tenantPool.of(tenant)).restore(to, digest, former) };
    },

    check(tenant, at, code, idempotencyKey) {
      return tenantPool.transaction(tenant, async (transaction) => {
        const store = createCodeStore(transaction);
        const sent = await store.lock(at);
        if (!sent) return undefined;
        const given = digestCode(key, at, code);
        const repeatable = idempotencyKey === undefined ? undefined : digestCheck(key, given, idempotencyKey);
        const outcome = judgeCode(sent, given, clock(), repeatable);
        if (outcome === 'verified' && workOnce) await store.end(at, repeatable);
        else if (outcome === 'exhausted') await store.end(at);
        else if (outcome === 'failed') await store.countFailure(at);
        return outcome === 'verified' || outcome === 'repeated';
      });
    },
  };
}
