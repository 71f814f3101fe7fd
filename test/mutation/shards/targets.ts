// The shards of the modules for proxied requests.
import type { Shard } from './shard.ts';

const targets = 'src/token-handler/targets';

export const targetShards: Readonly<Record<string, Shard>> = {
  paths: { modules: [`${targets}/path.ts`], tests: [`${targets}/path.test.ts`] },
  headers: {
    modules: [
      `${targets}/request-headers.ts`,
      `${targets}/response-headers.ts`,
      `${targets}/cache-limits.ts`,
      `${targets}/origin-wide-headers.ts`,
      `${targets}/untrusted-headers.ts`,
      `${targets}/upstream-policy.ts`,
      `${targets}/remembered.ts`,
    ],
    tests: [
      `${targets}/remembered.test.ts`,
      `${targets}/header-rules.test.ts`,
      `${targets}/untrusted-headers.test.ts`,
      `${targets}/inert-types.test.ts`,
      `${targets}/upstream-policy.test.ts`,
    ],
  },
  proxy: {
    modules: [`${targets}/proxied-request.ts`, `${targets}/proxy-options.ts`],
    tests: [`${targets}/proxied-request-events.test.ts`, `${targets}/proxied-request-rules.test.ts`],
  },
  'target-routes': {
    modules: [`${targets}/routes.ts`, `${targets}/targets.ts`],
    tests: [`${targets}/target-modules.test.ts`],
  },
  bodies: {
    modules: [`${targets}/bodies.ts`, `${targets}/body-memory.ts`],
    tests: [`${targets}/request-body.test.ts`, `${targets}/download.test.ts`, `${targets}/body-memory.test.ts`],
  },
  connections: {
    modules: [`${targets}/connections.ts`, `${targets}/connection-lease.ts`, `${targets}/connection-limits.ts`],
    tests: [
      `${targets}/connection-shares.test.ts`,
      `${targets}/connection-lease.test.ts`,
      `${targets}/upstream-lookups.test.ts`,
    ],
  },
  handler: {
    modules: [`${targets}/handler.ts`],
    tests: [`${targets}/handler.test.ts`, `${targets}/handler-rules.test.ts`],
  },
  'proxy-limits': {
    modules: [`${targets}/streams.ts`, `${targets}/transfer-rate.ts`, `${targets}/request-watch.ts`],
    tests: [`${targets}/stream-limits.test.ts`, `${targets}/slow-client.test.ts`, `${targets}/request-watch.test.ts`],
  },
  'proxy-rules': {
    modules: [
      `${targets}/proxy-failure.ts`,
      `${targets}/proxy-outcome.ts`,
      `${targets}/upstreams.ts`,
      'src/service/http/cross-origin.ts',
    ],
    tests: [`${targets}/proxy-rules.test.ts`, `${targets}/upstreams.test.ts`, 'src/service/http/cross-origin.test.ts'],
  },
  tunnels: {
    modules: [`${targets}/tunnel.ts`, `${targets}/client-socket.ts`],
    tests: [`${targets}/tunnel.test.ts`],
  },
};
