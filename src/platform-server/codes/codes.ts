// Issues and checks codes. A code works once, within ten minutes. Ten failed checks void a code; so does a new code for
// the same address.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { type CodePlace, codeLifetime, digestCode, generateCode, judgeCode } from './code.ts';
import { createCodeStore } from './store.ts';

export interface Codes {
  /** Returns a new code for this address, in plain text. The new code replaces the previous one. */
  issue(to: CodePlace): Promise<string>;
  /** True if the code is correct; it cannot be used again. Undefined if no code was ever sent to this address. */
  check(at: CodePlace, code: string): Promise<boolean | undefined>;
}

export function createCodes({ pool, key, clock }: { pool: pg.Pool; key: string; clock: Clock }): Codes {
  return {
    async issue(to) {
      const code = generateCode();
      const expires = new Date(clock().getTime() + codeLifetime);
      await createCodeStore(pool).replace(to, digestCode(key, to, code), expires);
      return code;
    },

    check(at, code) {
      return withTransaction(pool, async (transaction) => {
        const store = createCodeStore(transaction);
        const sent = await store.lock(at);
        if (!sent) return undefined;
        const outcome = judgeCode(sent, digestCode(key, at, code), clock());
        if (outcome === 'verified' || outcome === 'exhausted') await store.end(at);
        else if (outcome === 'failed') await store.countFailure(at);
        return outcome === 'verified';
      });
    },
  };
}
