// The shards of the modules for sessions.
import type { Shard } from './shard.ts';

const sessions = 'src/token-handler/sessions';

export const sessionShards: Readonly<Record<string, Shard>> = {
  cookies: {
    modules: [
      `${sessions}/cookies.ts`,
      `${sessions}/cookie-name.ts`,
      `${sessions}/guards.ts`,
      'src/service/http/cookie-header.ts',
      'src/service/same-text.ts',
    ],
    tests: [`${sessions}/cookies.test.ts`, `${sessions}/cookie-attributes.test.ts`, `${sessions}/guards.test.ts`],
  },
  'session-rules': {
    modules: [
      `${sessions}/session.ts`,
      `${sessions}/session-cap.ts`,
      `${sessions}/session-indexes.ts`,
      `${sessions}/token-size.ts`,
    ],
    tests: [`${sessions}/session-rules.test.ts`, `${sessions}/session-cap.test.ts`, `${sessions}/token-size.test.ts`],
  },
  'session-store': {
    modules: [`${sessions}/records.ts`, `${sessions}/memory-store.ts`],
    tests: [`${sessions}/records.test.ts`, `${sessions}/memory-store.test.ts`],
  },
  sessions: {
    modules: [`${sessions}/sessions.ts`, `${sessions}/session-lists.ts`, `${sessions}/end-watch.ts`],
    tests: [
      ...[`${sessions}/sessions-rules.test.ts`, `${sessions}/session-lists.test.ts`],
      ...[`${sessions}/end-watch.test.ts`, `${sessions}/end-watch-reads.test.ts`],
    ],
  },
  refreshes: {
    modules: [`${sessions}/refresh-queue.ts`, `${sessions}/refresh-attempt.ts`, `${sessions}/refresh.ts`],
    tests: [
      `${sessions}/refresh-queue-rules.test.ts`,
      `${sessions}/refresh-attempt.test.ts`,
      `${sessions}/refresh-rules.test.ts`,
    ],
  },
  'list-queue': { modules: [`${sessions}/list-queue.ts`], tests: [`${sessions}/list-queue.test.ts`] },
  'session-routes': {
    modules: [`${sessions}/routes.ts`, `${sessions}/store.ts`],
    tests: [
      `${sessions}/list-outcomes.test.ts`,
      `${sessions}/end-outcomes.test.ts`,
      `${sessions}/store-connection.test.ts`,
    ],
  },
  'redis-store': {
    modules: [`${sessions}/redis-store.ts`, `${sessions}/redis-indexes.ts`],
    tests: [`${sessions}/store.test.ts`],
  },
};
