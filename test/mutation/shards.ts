// Divides the security-critical modules into shards. A shard lists the files that are mutated together, and the tests
// that must notice the changes. Tests that need no server come first, because each mutant runs every test that covers
// it.

import { clientShards } from './shards/clients.ts';
import { formShards } from './shards/forms.ts';
import { serviceShards } from './shards/service.ts';
import { sessionShards } from './shards/sessions.ts';
import type { Shard } from './shards/shard.ts';
import { signInShards } from './shards/sign-in.ts';
import { targetShards } from './shards/targets.ts';

export const shards: Readonly<Record<string, Shard>> = {
  ...targetShards,
  ...sessionShards,
  ...signInShards,
  ...clientShards,
  ...formShards,
  ...serviceShards,
};
