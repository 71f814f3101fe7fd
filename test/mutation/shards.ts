// Divides the security-critical modules into shards. A shard lists the files that are mutated together, and the tests
// that must notice the changes. Tests that need no server come first, because each mutant runs every test that covers
// it.

export interface Shard {
  /** Files that are mutated. */
  modules: readonly string[];
  /** Test files that run against each mutant. */
  tests: readonly string[];
  /** True if the tests need the Postgres server of `test/support/global-setup.ts`. */
  needsPostgres?: true;
}

const targets = 'src/token-handler/targets';
const sessions = 'src/token-handler/sessions';
const signIn = 'src/token-handler/sign-in';
const logout = 'src/token-handler/logout';
const auth = 'src/service/auth';
const clients = 'src/token-handler/clients';

export const shards: Readonly<Record<string, Shard>> = {
  keys: { modules: ['src/service/keys/key-ring.ts'], tests: ['src/service/keys/key-ring.test.ts'] },
  paths: { modules: [`${targets}/path.ts`], tests: [`${targets}/path.test.ts`] },
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
  'sign-in': {
    modules: [`${signIn}/id-token.ts`, `${signIn}/failing-clients.ts`],
    tests: [`${signIn}/id-token.test.ts`, `${signIn}/failing-clients.test.ts`],
  },
  'sign-in-addresses': { modules: [`${signIn}/sign-in.ts`], tests: [`${signIn}/sign-in.test.ts`] },
  codes: { modules: ['src/forms/codes/code.ts'], tests: ['src/forms/codes/code.test.ts'] },
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
    tests: [`${sessions}/sessions-rules.test.ts`, `${sessions}/session-lists.test.ts`, `${sessions}/end-watch.test.ts`],
  },
  refreshes: {
    modules: [`${sessions}/refresh-queue.ts`, `${sessions}/refresh-attempt.ts`, `${sessions}/refresh.ts`],
    tests: [
      `${sessions}/refresh-queue-rules.test.ts`,
      `${sessions}/refresh-attempt.test.ts`,
      `${sessions}/refresh-rules.test.ts`,
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
  identity: {
    modules: [`${auth}/identity.ts`, `${auth}/tenant-issuers.ts`],
    tests: [`${auth}/tenant-issuers.test.ts`, `${auth}/identity.test.ts`],
  },
  'realm-keys': { modules: [`${auth}/realm-keys.ts`], tests: [`${auth}/realm-keys.test.ts`] },
  'key-set': { modules: [`${auth}/key-set.ts`], tests: [`${auth}/key-set.test.ts`] },
  'signing-keys': { modules: [`${auth}/signing-keys.ts`], tests: [`${auth}/signing-key-limits.test.ts`] },
  guards: { modules: [`${auth}/bearer-guards.ts`], tests: [`${auth}/bearer-guard-rules.test.ts`] },
  'identity-provider': {
    modules: [`${auth}/identity-provider.ts`, `${auth}/identity-provider-watch.ts`],
    tests: [`${auth}/identity-provider-rules.test.ts`],
  },
  'client-rules': {
    modules: [
      'src/service/clients/client-entries.ts',
      'src/service/clients/client-rules.ts',
      'src/service/clients/client-url-rules.ts',
    ],
    tests: ['src/service/clients/client-rules.test.ts'],
  },
  'redirect-uri': {
    modules: ['src/service/clients/redirect-uri.ts'],
    tests: ['src/service/clients/redirect-uri.test.ts'],
  },
  client: {
    modules: [`${clients}/client-metadata.ts`, `${clients}/client-path.ts`, `${clients}/client.ts`],
    tests: [`${clients}/client.test.ts`, `${clients}/client-metadata.test.ts`, `${clients}/catalog-rules.test.ts`],
  },
  access: {
    modules: [
      'src/forms/forms/access.ts',
      'src/forms/registers/policy.ts',
      'src/platform-server/configuration/policy.ts',
      'src/platform-server/notifications/policy.ts',
      'src/platform-server/tenants/policy.ts',
    ],
    tests: [
      'src/forms/forms/access.test.ts',
      'src/forms/forms/request-rules.test.ts',
      'src/forms/registers/policy.test.ts',
      'src/platform-server/configuration/policy.test.ts',
      'src/platform-server/notifications/policy.test.ts',
      'src/platform-server/tenants/policy.test.ts',
    ],
  },
  policy: { modules: ['src/forms/forms/policy.ts'], tests: ['src/forms/forms/policy.test.ts'] },
  retention: { modules: ['src/forms/expiry/retention.ts'], tests: ['src/forms/expiry/retention.test.ts'] },
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
    ],
  },
  'token-refresh': {
    modules: [
      `${signIn}/token-refresh.ts`,
      `${signIn}/relying-party.ts`,
      `${signIn}/provider-cache.ts`,
      `${auth}/provider-fetch.ts`,
    ],
    tests: [`${signIn}/token-refresh.test.ts`, `${signIn}/relying-party.test.ts`],
  },
  'expiry-dates': {
    modules: ['src/forms/expiry/dates.ts', 'src/forms/expiry/subscriber-checks.ts'],
    tests: [
      'src/forms/expiry/dates.test.ts',
      'src/forms/expiry/find-policy.test.ts',
      'src/forms/expiry/subscriber-checks.test.ts',
    ],
    needsPostgres: true,
  },
  verification: {
    modules: ['src/forms/codes/verification.ts', 'src/forms/codes/store.ts'],
    tests: [
      'src/forms/codes/sending.test.ts',
      'src/forms/codes/store.test.ts',
      'src/forms/codes/sends-and-locks.test.ts',
      'src/forms/codes/verification.test.ts',
    ],
    needsPostgres: true,
  },
  'expiry-sql': {
    modules: [
      'src/forms/expiry/deletion.ts',
      'src/forms/expiry/expiry.ts',
      'src/forms/expiry/statements.ts',
      'src/forms/expiry/store.ts',
    ],
    tests: ['src/forms/expiry/lock-and-warn.test.ts', 'src/forms/expiry/deletion.test.ts'],
    needsPostgres: true,
  },
  'expiry-records': {
    modules: [
      'src/forms/expiry/control-form.ts',
      'src/forms/expiry/count-forms.ts',
      'src/forms/expiry/erasure-store.ts',
      'src/forms/expiry/purge-store.ts',
      'src/forms/expiry/run-store.ts',
    ],
    tests: [
      'src/forms/expiry/control-form.test.ts',
      'src/forms/expiry/erasure-store.test.ts',
      'src/forms/expiry/purge-rules.test.ts',
      'src/forms/expiry/run-store.test.ts',
    ],
    needsPostgres: true,
  },
  catalog: {
    modules: [
      `${clients}/background-tasks.ts`,
      `${clients}/catalog.ts`,
      `${clients}/client-document.ts`,
      `${clients}/maintained-client.ts`,
      `${clients}/registration.ts`,
    ],
    tests: [
      `${clients}/background-tasks.test.ts`,
      `${clients}/catalog-rules.test.ts`,
      `${clients}/maintained-client-rules.test.ts`,
      `${clients}/registration.test.ts`,
    ],
  },
  registrations: {
    modules: [`${clients}/provided-clients.ts`, `${clients}/provider-registration.ts`],
    tests: [`${clients}/provided-client-rules.test.ts`, `${clients}/provider-registration.test.ts`],
  },
  'session-routes': {
    modules: [`${sessions}/routes.ts`, `${sessions}/store.ts`],
    tests: [`${sessions}/routes.test.ts`],
    needsPostgres: true,
  },
  'logout-routes': {
    modules: [`${logout}/routes.ts`],
    tests: [`${logout}/logout.test.ts`, `${logout}/backchannel.test.ts`],
    needsPostgres: true,
  },
  'sign-in-routes': {
    modules: [`${signIn}/routes.ts`, `${signIn}/sign-ins.ts`],
    tests: [
      `${signIn}/asked-parameters.test.ts`,
      `${signIn}/sign-in-flow.test.ts`,
      `${signIn}/sign-in-outcomes.test.ts`,
    ],
    needsPostgres: true,
  },
  'client-routes': {
    modules: [`${clients}/clients.ts`, `${clients}/routes.ts`],
    tests: [`${clients}/routes.test.ts`, `${clients}/provided-clients.test.ts`],
    needsPostgres: true,
  },
  'target-routes': {
    modules: [`${targets}/routes.ts`, `${targets}/targets.ts`],
    tests: [`${targets}/routes.test.ts`],
    needsPostgres: true,
  },
  proxy: {
    modules: [`${targets}/proxied-request.ts`, `${targets}/proxy-options.ts`],
    tests: [`${targets}/proxied-request-rules.test.ts`],
  },
  registrar: { modules: [`${clients}/registrar.ts`], tests: [`${clients}/registrar-rules.test.ts`] },
  'registration-store': {
    modules: [`${clients}/registration-store.ts`, `${clients}/leftover-clients.ts`],
    tests: [`${clients}/registration-store.test.ts`, `${clients}/leftover-clients.test.ts`],
    needsPostgres: true,
  },
  upkeep: {
    modules: [`${clients}/leftover-store.ts`, `${clients}/key-ring-store.ts`, `${clients}/upkeep.ts`],
    tests: [`${clients}/leftover-store.test.ts`, `${clients}/key-ages.test.ts`, `${clients}/upkeep-rules.test.ts`],
    needsPostgres: true,
  },
  'redis-store': {
    modules: [`${sessions}/redis-store.ts`, `${sessions}/redis-indexes.ts`],
    tests: [`${sessions}/store.test.ts`],
  },
  bodies: {
    modules: [`${targets}/bodies.ts`, `${targets}/body-memory.ts`],
    tests: [`${targets}/request-body.test.ts`, `${targets}/download.test.ts`, `${targets}/body-memory.test.ts`],
  },
  connections: {
    modules: [`${targets}/connections.ts`, `${targets}/connection-lease.ts`],
    tests: [`${targets}/connection-shares.test.ts`, `${targets}/connection-lease.test.ts`],
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
