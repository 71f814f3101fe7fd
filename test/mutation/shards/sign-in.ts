// The shards of the modules for sign-in and logout.
import type { Shard } from './shard.ts';

const signIn = 'src/token-handler/sign-in';
const logout = 'src/token-handler/logout';
const auth = 'src/service/auth';

export const signInShards: Readonly<Record<string, Shard>> = {
  'sign-in': {
    modules: [`${signIn}/id-token.ts`, `${signIn}/failing-clients.ts`],
    tests: [`${signIn}/id-token.test.ts`, `${signIn}/failing-clients.test.ts`],
  },
  'sign-in-addresses': { modules: [`${signIn}/sign-in.ts`], tests: [`${signIn}/sign-in.test.ts`] },
  attempts: {
    modules: [`${signIn}/attempts.ts`, `${signIn}/attempt-cookies.ts`],
    tests: [`${signIn}/attempt-rules.test.ts`],
  },
  'token-checks': {
    modules: [
      `${signIn}/failures.ts`,
      `${signIn}/redeem-code.ts`,
      `${signIn}/refreshed-tokens.ts`,
      `${signIn}/sign-in-outcomes.ts`,
    ],
    tests: [
      `${signIn}/redeem-code.test.ts`,
      `${signIn}/refreshed-tokens.test.ts`,
      `${signIn}/counted-outcomes.test.ts`,
      `${signIn}/callback-route.test.ts`,
    ],
  },
  'token-refresh': {
    modules: [
      `${signIn}/token-refresh.ts`,
      `${signIn}/relying-party.ts`,
      `${signIn}/provider-cache.ts`,
      `${auth}/provider-fetch.ts`,
    ],
    tests: [`${signIn}/token-refresh.test.ts`, `${signIn}/relying-party.test.ts`, `${auth}/provider-fetch.test.ts`],
  },
  'sign-in-routes': {
    modules: [`${signIn}/routes.ts`, `${signIn}/sign-ins.ts`],
    tests: [
      `${signIn}/auth-route.test.ts`,
      `${signIn}/callback-route.test.ts`,
      `${signIn}/refused-callback.test.ts`,
      `${signIn}/sign-ins.test.ts`,
    ],
  },
  logout: {
    modules: [
      `${logout}/logout-token.ts`,
      `${logout}/provider-logouts.ts`,
      `${signIn}/open-session.ts`,
      `${signIn}/browser-session.ts`,
    ],
    tests: [
      `${logout}/logout-token.test.ts`,
      `${logout}/provider-logouts.test.ts`,
      `${signIn}/open-session.test.ts`,
      `${signIn}/open-session-rules.test.ts`,
    ],
  },
  'logout-routes': {
    modules: [`${logout}/routes.ts`],
    tests: [`${logout}/routes.test.ts`, `${logout}/logout.test.ts`, `${logout}/backchannel.test.ts`],
    needsPostgres: true,
  },
};
