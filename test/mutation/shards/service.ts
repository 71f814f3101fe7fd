// The shards of the modules for bearer tokens, the keys of identity providers, the key ring, and limits on received
// data.
import type { Shard } from './shard.ts';

const auth = 'src/service/auth';

export const serviceShards: Readonly<Record<string, Shard>> = {
  keys: { modules: ['src/service/keys/key-ring.ts'], tests: ['src/service/keys/key-ring.test.ts'] },
  identity: {
    modules: [`${auth}/identity.ts`, `${auth}/token-claims.ts`, `${auth}/tenant-issuers.ts`],
    tests: [`${auth}/tenant-issuers.test.ts`, `${auth}/identity.test.ts`],
  },
  'realm-keys': { modules: [`${auth}/realm-keys.ts`], tests: [`${auth}/realm-keys.test.ts`] },
  'key-set': { modules: [`${auth}/key-set.ts`], tests: [`${auth}/key-set.test.ts`] },
  'signing-keys': { modules: [`${auth}/signing-keys.ts`], tests: [`${auth}/signing-key-limits.test.ts`] },
  guards: { modules: [`${auth}/bearer-guards.ts`], tests: [`${auth}/bearer-guard-rules.test.ts`] },
  'identity-provider': {
    modules: [`${auth}/identity-provider.ts`, `${auth}/identity-provider-watch.ts`],
    tests: [`${auth}/identity-provider-rules.test.ts`, `${auth}/identity-provider-watch.test.ts`],
  },
  'received-data': {
    modules: [
      'src/platform/document-budget.ts',
      'src/service/http/uncompressed-responses.ts',
      'src/service/storable-text.ts',
      `${auth}/token-roles.ts`,
    ],
    tests: [
      'src/platform/document-budget-limits.test.ts',
      'src/service/http/uncompressed-responses.test.ts',
      'src/service/storable-text.test.ts',
      `${auth}/token-roles.test.ts`,
    ],
  },
};
