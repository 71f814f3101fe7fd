// The security-critical modules in shards: which files are mutated together, and which tests must notice the changes.
// Tests that need no server come first, because each mutant runs every test that covers it.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

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
const auth = 'src/service/auth';

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
  identity: {
    modules: [
      `${auth}/identity.ts`,
      `${auth}/key-set.ts`,
      `${auth}/realm-keys.ts`,
      `${auth}/signing-keys.ts`,
      `${auth}/tenant-issuers.ts`,
    ],
    tests: [`${auth}/identity.test.ts`, `${auth}/signing-keys.test.ts`, `${auth}/tenant-issuers.test.ts`],
  },
  'sign-in': {
    modules: [`${signIn}/id-token.ts`, `${signIn}/sign-in.ts`, `${signIn}/failing-clients.ts`],
    tests: [`${signIn}/id-token.test.ts`, `${signIn}/sign-in.test.ts`, `${signIn}/failing-clients.test.ts`],
  },
  clients: {
    modules: [
      'src/service/clients/client-rules.ts',
      'src/service/clients/redirect-uri.ts',
      'src/token-handler/clients/client.ts',
    ],
    tests: ['src/service/clients/redirect-uri.test.ts', 'src/token-handler/clients/client.test.ts'],
  },
  codes: { modules: ['src/forms/codes/code.ts'], tests: ['src/forms/codes/code.test.ts'] },
  'proxy-rules': {
    modules: [
      `${targets}/proxy-failure.ts`,
      `${targets}/proxy-outcome.ts`,
      `${targets}/upstreams.ts`,
      'src/service/http/cross-origin.ts',
    ],
    tests: [`${targets}/proxy-rules.test.ts`, `${targets}/upstreams.test.ts`, 'src/service/http/cross-origin.test.ts'],
  },
  'proxy-limits': {
    modules: [`${targets}/streams.ts`, `${targets}/transfer-rate.ts`, `${targets}/request-watch.ts`],
    tests: [`${targets}/stream-limits.test.ts`, `${targets}/slow-client.test.ts`, `${targets}/request-watch.test.ts`],
  },
  connections: {
    modules: [`${targets}/connections.ts`, `${targets}/connection-lease.ts`],
    tests: [`${targets}/connection-shares.test.ts`, `${targets}/connection-lease.test.ts`],
  },
  bodies: {
    modules: [`${targets}/bodies.ts`, `${targets}/body-memory.ts`],
    tests: [`${targets}/request-body.test.ts`, `${targets}/download.test.ts`, `${targets}/body-memory.test.ts`],
  },
  tunnels: {
    modules: [`${targets}/tunnel.ts`, `${targets}/client-socket.ts`],
    tests: [`${targets}/tunnel.test.ts`],
  },
  handler: {
    modules: [`${targets}/handler.ts`],
    tests: [`${targets}/handler.test.ts`, `${targets}/handler-rules.test.ts`],
  },
  proxy: {
    modules: [`${targets}/proxied-request.ts`],
    tests: [`${targets}/proxied-request-rules.test.ts`],
  },
  policy: { modules: ['src/forms/forms/policy.ts'], tests: ['src/forms/forms/policy.test.ts'] },
  retention: { modules: ['src/forms/expiry/retention.ts'], tests: ['src/forms/expiry/retention.test.ts'] },
};

/** Folders whose files decide who may do what, or keep secrets. */
const criticalFolders = [
  targets,
  sessions,
  signIn,
  auth,
  'src/token-handler/clients',
  'src/token-handler/logout',
  'src/service/clients',
  'src/service/keys',
  'src/forms/codes',
  'src/forms/expiry',
];
const criticalFiles = [
  'src/service/http/cookie-header.ts',
  'src/service/http/cross-origin.ts',
  'src/service/same-text.ts',
  'src/forms/forms/access.ts',
  'src/forms/forms/policy.ts',
  'src/forms/registers/policy.ts',
  'src/platform-server/configuration/policy.ts',
  'src/platform-server/notifications/policy.ts',
  'src/platform-server/tenants/policy.ts',
];
/** Files of those folders that only count or describe. */
const uncritical = /(?:\.test|-metrics|\/metrics|\/migrations|\/schema|-log|-audit)\.ts$/;

/** Returns the paths of all security-critical modules, sorted. */
export function criticalModules(): string[] {
  const root = join(import.meta.dirname, '../..');
  const files = criticalFolders.flatMap((folder) => readdirSync(join(root, folder)).map((file) => `${folder}/${file}`));
  return [...files.filter((file) => file.endsWith('.ts') && !uncritical.test(file)), ...criticalFiles].sort();
}
