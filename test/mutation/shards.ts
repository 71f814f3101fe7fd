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
      `${targets}/untrusted-headers.ts`,
      `${targets}/upstream-policy.ts`,
    ],
    tests: [
      `${targets}/header-rules.test.ts`,
      `${targets}/untrusted-headers.test.ts`,
      `${targets}/inert-types.test.ts`,
      `${targets}/upstream-policy.test.ts`,
    ],
  },
  'sign-in': {
    modules: [`${signIn}/id-token.ts`, `${signIn}/sign-in.ts`, `${signIn}/failing-clients.ts`],
    tests: [`${signIn}/id-token.test.ts`, `${signIn}/sign-in.test.ts`, `${signIn}/failing-clients.test.ts`],
  },
  codes: { modules: ['src/forms/codes/code.ts'], tests: ['src/forms/codes/code.test.ts'] },
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
    tests: [`${clients}/client.test.ts`, `${clients}/client-metadata.test.ts`],
  },
  catalog: {
    modules: [
      `${clients}/background-tasks.ts`,
      `${clients}/catalog.ts`,
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
  registrar: { modules: [`${clients}/registrar.ts`], tests: [`${clients}/registrar-rules.test.ts`] },
  policy: { modules: ['src/forms/forms/policy.ts'], tests: ['src/forms/forms/policy.test.ts'] },
  retention: { modules: ['src/forms/expiry/retention.ts'], tests: ['src/forms/expiry/retention.test.ts'] },
};

/** Folders whose files decide who may do what, or keep secrets. */
const criticalFolders = [
  targets,
  sessions,
  signIn,
  auth,
  clients,
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
