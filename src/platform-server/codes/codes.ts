// Issues and checks codes. A code works once, for ten minutes. Ten failed checks or a new code for the same address
// void it.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { type CodePlace, codeLifetime, digestCode, generateCode, judgeCode } from './code.ts';
import { createCodeStore } from './store.ts';

export interface Codes {
  /** Returns a new code for this address, in plain text. It replaces the previous code. */
  issue(to: CodePlace): Promise<string>;
  /** Whether the code is right; if so, it is used up. Undefined if no code was ever sent to this address. */
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
