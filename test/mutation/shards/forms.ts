// The shards of the modules for codes, keyed hashes, the intake application, the expiry of forms, and authorization.
import type { Shard } from './shard.ts';

export const formShards: Readonly<Record<string, Shard>> = {
  codes: { modules: ['src/forms/codes/code.ts'], tests: ['src/forms/codes/code.test.ts'] },
  'platform-codes': {
    modules: ['src/platform-server/codes/code.ts'],
    tests: ['src/platform-server/codes/code.test.ts'],
  },
  'keyed-hashes': {
    modules: ['src/forms/addresses/address.ts', 'src/forms/forms/history.ts', 'src/forms/forms/idempotency.ts'],
    tests: [
      'src/forms/addresses/index-walk.test.ts',
      'src/forms/addresses/search.test.ts',
      'src/forms/forms/history.test.ts',
      'src/forms/forms/create.test.ts',
    ],
    needsPostgres: true,
  },
  'apply-access': {
    modules: [
      ...['cookies', 'guards', 'code-routes'].map((name) => `src/forms/apply/${name}.ts`),
      'src/service/http/own-calls.ts',
    ],
    tests: ['code-routes', 'own-calls', 'apply'].map((name) => `src/forms/apply/${name}.test.ts`),
    needsPostgres: true,
  },
  'apply-limits': {
    modules: ['counts', 'hashes', 'store'].map((name) => `src/forms/apply/${name}.ts`),
    tests: ['store', 'limits', 'uploads'].map((name) => `src/forms/apply/${name}.test.ts`),
    needsPostgres: true,
  },
  'notice-links': {
    modules: ['src/forms/notices/links.ts', 'src/forms/apply/notice-routes.ts'],
    tests: ['src/forms/apply/notice-links.test.ts'],
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
  'expiry-dates': {
    modules: ['src/forms/expiry/dates.ts', 'src/forms/expiry/subscriber-checks.ts'],
    tests: [
      'src/forms/expiry/dates.test.ts',
      'src/forms/expiry/find-policy.test.ts',
      'src/forms/expiry/subscriber-checks.test.ts',
    ],
    needsPostgres: true,
  },
  'expiry-sql': {
    modules: [
      'src/forms/expiry/count-statements.ts',
      'src/forms/expiry/definition-statements.ts',
      'src/forms/expiry/deletion.ts',
      'src/forms/expiry/expiry.ts',
      'src/forms/expiry/notice-limit.ts',
      'src/forms/expiry/statements.ts',
      'src/forms/expiry/store.ts',
    ],
    tests: [
      'src/forms/expiry/lock-and-warn.test.ts',
      'src/forms/expiry/notice-limit.test.ts',
      'src/forms/expiry/deletion.test.ts',
    ],
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
};
