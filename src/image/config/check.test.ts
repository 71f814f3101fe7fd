// Tests the command `config` with real dependencies: Postgres, Redis, an identity provider and the platform server.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testServiceSecret } from '../../../test/support/access.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { reconcilerEnv } from '../../../test/support/reconciler.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { migrate } from '../../service/postgres/migrate.ts';
import { type Registration, sealRegistration } from '../../token-handler/clients/registration.ts';
import type { CheckCommand, ProcessName } from './arguments.ts';
import { checkConfiguration, findProblems } from './check.ts';
import { exitCodeOf } from './finding.ts';
import type { DependencyCheck } from './processes.ts';

type Env = Record<string, string | undefined>;

const migrationsOf = (name: string) => join(import.meta.dirname, '../..', name, 'migrations');
const nowhere = 'postgres://canary-user:canary-password@127.0.0.1:9/none';

let platform: TestPlatform;
let redis: TestRedis;
let databases: Record<'forms' | 'token-handler' | 'empty', TestDatabase>;
let envs: Record<ProcessName, Env>;

beforeAll(async () => {
  const [one, two, three, four, five] = await Promise.all([
    startTestPlatform(),
    startTestRedis({ password: 'canary-of-redis' }),
    createTestDatabase(migrationsOf('forms')),
    createTestDatabase(migrationsOf('token-handler')),
    createTestDatabase(),
  ]);
  [platform, redis] = [one, two];
  databases = { forms: three, 'token-handler': four, empty: five };
  const account = reconcilerEnv(platform, databases.forms.url);
  envs = {
    forms: { ...account, CODE_KEY: 'canary'.repeat(6) },
    'token-handler': {
      ...account,
      DATABASE_URL: databases['token-handler'].url,
      CLIENT_SECRET: testServiceSecret(platform.access.urns.service('token-handler')),
      KEY_RING: `k1:${randomBytes(32).toString('base64')}`,
      REDIS_URL: redis.url,
      REDIS_PASSWORD: 'canary-of-redis',
    },
    'platform-server': platform.env,
    reconciler: account,
  };
});

afterAll(async () => {
  await Promise.all([platform.close(), redis.close()]);
  await Promise.all(Object.values(databases).map((one) => one.drop()));
});

async function check(name: ProcessName, changes: Env = {}, options: Partial<CheckCommand> = {}) {
  const env = { ...envs[name], ...changes };
  const reports = await checkConfiguration({ processes: [name], skipped: [], timeLimit: 3_000, ...options, env });
  expect(JSON.stringify(reports)).not.toContain('canary');
  const findings = reports.flatMap((report) => report.findings);
  return {
    code: exitCodeOf(reports),
    checked: reports[0]?.checked,
    findings: findings.map(({ severity, name: setting, problem }) => `${severity}: ${setting}: ${problem}`),
  };
}

async function query(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

describe('a correct configuration', () => {
  it.each([
    ['forms', ['settings', 'postgres', 'identity-provider', 'directory']],
    ['token-handler', ['settings', 'postgres', 'redis', 'identity-provider', 'directory']],
    ['platform-server', ['settings', 'postgres', 'identity-provider', 'mail']],
    ['reconciler', ['settings', 'postgres', 'identity-provider', 'directory']],
  ] as const)('of %s has no problems, and its dependencies are checked', async (name, checked) => {
    expect(await check(name)).toEqual({ code: 0, checked, findings: [] });
  });

  it('may have warnings', async () => {
    const { code, findings } = await check('forms', { CODE_LIFTIME: 'PT5M', DIR_PLATFORM_CONFIG_SERVICE: 'http://c' });
    expect(code).toBe(0);
    expect(findings).toEqual([
      'warning: CODE_LIFTIME: is unknown and ignored; CODE_LIFETIME may be meant',
      'warning: DIR_PLATFORM_CONFIG_SERVICE: is unknown and ignored; DIR_PLATFORM_CONFIGURATION_SERVICE may be meant',
    ]);
  });
});

describe('a wrong setting is an error', () => {
  it('also while dependencies of other settings are checked', async () => {
    const changes = { WARN_BEFORE: 'P20D', DIR_A_B: 'ftp://canary', CLIENT_SECRET: 'canary-of-another' };
    const { code, findings } = await check('reconciler', changes);
    expect(code).toBe(1);
    expect(findings).toEqual([
      'error: WARN_BEFORE: must be shorter than LOCK_AFTER',
      'error: DIR_A_B: must be an http or https URL without credentials',
      expect.stringMatching(/^error: CLIENT_SECRET: the identity provider rejected this service's credentials/),
    ]);
  });

  it.each<[string, ProcessName, () => Env, RegExp]>([
    [
      'a database of another service',
      'forms',
      () => ({ DATABASE_URL: databases['token-handler'].url }),
      /another service/,
    ],
    [
      'a database without tables for the reconciler',
      'reconciler',
      () => ({ DATABASE_URL: databases.empty.url }),
      /no tables of the form service/,
    ],
    [
      'a password that Redis refuses',
      'token-handler',
      () => ({ REDIS_PASSWORD: 'canary' }),
      /REDIS_URL: Redis refuses/,
    ],
    ['another issuer', 'forms', () => ({ ACCESS_SERVICE_PUBLIC_URL: 'https://other.example.org' }), /issuer differs/],
    [
      'a directory without entries',
      'forms',
      () => ({ URN_PREFIX: 'urn:another' }),
      /no usable entry for urn:another:platform:tenant-service:v2/,
    ],
  ])('%s', async (_title, name, changes, expected) => {
    const { code, findings } = await check(name, changes());
    expect(findings.join('\n')).toMatch(expected);
    expect(code).toBe(1);
  });

  it.each<[ProcessName, string[]]>([
    ['forms', ['tenant-service:v2', 'configuration-service:v2', 'notification-service:v1', 'event-service:v1']],
    ['token-handler', ['tenant-service:v2', 'configuration-service:v2', 'event-service:v1']],
    ['reconciler', ['tenant-service:v2', 'configuration-service:v2', 'notification-service:v1']],
  ])('%s names each service that the directory lacks', async (name, services) => {
    const { findings } = await check(name, { URN_PREFIX: 'urn:another' });
    const missing = findings.flatMap((text) => /no usable entry for urn:another:platform:(\S+)/.exec(text)?.[1] ?? []);
    expect(missing).toEqual(services);
  });

  it('a directory without the file service, if forms are deleted with their files', async () => {
    const { code, findings } = await check('forms', { DELETE_FILES: 'true' });
    const urn = platform.access.urns.service('file-service:v1');
    expect(findings).toEqual([`error: DIRECTORY_URL: the directory has no usable entry for ${urn}`]);
    expect(code).toBe(1);
  });

  it('more connections than the database allows', async () => {
    const limited = await createTestDatabase();
    await query(limited.url, `ALTER DATABASE ${new URL(limited.url).pathname.slice(1)} CONNECTION LIMIT 18`);
    const { code, findings } = await check('forms', { DATABASE_URL: limited.url });
    await limited.drop();
    const problem = 'one process opens up to 19 connections, but the database allows 18';
    expect(findings).toEqual([`error: DATABASE_POOL_SIZE: ${problem}`]);
    expect(code).toBe(1);
  });

  it('a key ring without the keys of stored registrations and of clients that are still to be deleted', async () => {
    const row = "('t', 'c', 'r', 'o', 'k0.x', 'k2.x', 'http://x', '[]', now(), 'http://i')";
    const columns =
      'tenant_id, client_id, realm, oidc_client_id, client_secret, registration_access_token, registration_client_uri, redirect_uris, registered_at, issuer';
    const { url } = databases['token-handler'];
    await query(
      url,
      `INSERT INTO client_registrations (${columns}) VALUES ${row}`,
      `INSERT INTO client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token,
         registration_client_uri, created, not_before) VALUES ('t', 'c', 'r', 'o', 'k3.x', 'http://x', now(), now())`,
    );
    const { code, findings } = await check('token-handler');
    await query(url, 'DELETE FROM client_registrations', 'DELETE FROM client_deletions');
    expect(findings).toEqual(
      ['k0', 'k2', 'k3'].map(
        (key) => `error: KEY_RING: lacks the key "${key}", with which stored registrations are encrypted`,
      ),
    );
    expect(code).toBe(1);
  });

  it('a key ring whose key has the name of the key of stored registrations, but other bytes', async () => {
    const { url } = databases['token-handler'];
    const { KEY_RING = '' } = envs['token-handler'];
    const registration = {
      ...{ tenantId: 't', clientId: 'c', oidcClientId: 'o', clientSecret: 'canary-secret' },
      registrationAccessToken: 'canary-token',
    } as Registration;
    const { clientSecret, registrationAccessToken } = sealRegistration(createKeyRing(KEY_RING), registration);
    const sealed = `'${clientSecret}', '${registrationAccessToken}'`;
    await query(
      url,
      `INSERT INTO client_registrations (tenant_id, client_id, realm, oidc_client_id, client_secret,
         registration_access_token, registration_client_uri, redirect_uris, registered_at, issuer)
       VALUES ('t', 'c', 'r', 'o', ${sealed}, 'http://x', '[]', now(), 'http://i')`,
    );
    const right = await check('token-handler');
    const wrong = await check('token-handler', { KEY_RING: `k1:${randomBytes(32).toString('base64')}` });
    await query(url, 'DELETE FROM client_registrations');
    expect(right.findings).toEqual([]);
    const problem = 'has a key "k1", but stored registrations are encrypted with another key of this name';
    expect(wrong.findings).toEqual([`error: KEY_RING: ${problem}`]);
    expect(wrong.code).toBe(1);
  });
});

it('a Redis that offers no TLS is unreachable if REDIS_TLS is set, and the other problems are still reported', async () => {
  const REDIS_URL = redis.url.replace('//', '//:canary-of-redis@');
  const tls = { REDIS_URL, REDIS_PASSWORD: undefined, REDIS_TLS: 'true' };
  const changes = { ...tls, DATABASE_URL: databases.forms.url };
  const { code, findings } = await check('token-handler', changes, { skipped: ['identity-provider', 'directory'] });
  expect(findings).toEqual([
    expect.stringMatching(/^error: DATABASE_URL: .*another service/),
    'unreachable: REDIS_URL: Redis does not respond',
  ]);
  expect(code).toBe(1);
});

it.each([
  ['sslrootcert=/canary/ca.crt', 'sslrootcert names cannot be read (ENOENT)'],
  ['sslmode=verify-full&sslcert=/', 'sslcert names cannot be read (EISDIR)'],
])(
  'a database URL with %s names a file that cannot be read, and the other problems are still reported',
  async (query, problem) => {
    const changes = { DATABASE_URL: `${databases['token-handler'].url}?${query}`, REDIS_PASSWORD: 'canary-of-another' };
    const { code, findings } = await check('token-handler', changes, { skipped: ['identity-provider', 'directory'] });
    expect(findings).toEqual([
      `error: DATABASE_URL: the file that ${problem}`,
      'error: REDIS_URL: Redis refuses the credentials',
    ]);
    expect(code).toBe(1);
  },
);

it('a check that fails unexpectedly is reported without its message, which may contain a value', async () => {
  const run = () => Promise.reject(new TypeError('cannot use redis://:canary@redis'));
  const failing: DependencyCheck = { dependency: 'redis', names: ['REDIS_URL', 'REDIS_TLS'], run };
  expect(await findProblems(failing, {}, { env: {}, timeLimit: 3_000 })).toEqual([
    { severity: 'error', name: 'REDIS_URL', problem: 'the check of redis failed: TypeError' },
  ]);
});

it('a dependency that does not respond in time is unreachable, which is no proof of a wrong setting', async () => {
  const stopwatch = startStopwatch();
  const away = { DATABASE_URL: nowhere, REDIS_URL: 'redis://127.0.0.1:9', DIRECTORY_URL: 'http://127.0.0.1:9' };
  const changes = { ...away, ACCESS_SERVICE_URL: 'http://127.0.0.1:9/auth' };
  const { code, findings } = await check('token-handler', changes, { timeLimit: 6_000 });
  expect(code).toBe(3);
  expect(findings.map((text) => text.split(' ').slice(0, 2).join(' '))).toEqual([
    'unreachable: DATABASE_URL:',
    'unreachable: REDIS_URL:',
    'unreachable: ACCESS_SERVICE_URL:',
    'unreachable: CLIENT_SECRET:',
    'unreachable: DIRECTORY_URL:',
  ]);
  expect(findings[3]).toContain('the identity provider did not respond as expected: unreachable');
  expect(stopwatch.stop()).toBeLessThan(12_000);
});

it('a dependency that refuses connections, and then only hangs, is reported with the refusal', async () => {
  let hangs = false;
  const sockets = new Set<Socket>();
  const directory = createServer((socket) => {
    socket.on('error', () => {});
    sockets.add(socket);
    if (!hangs) socket.destroy();
  });
  const port = await listenOnLoopback(directory);
  setTimeout(() => {
    hangs = true;
  }, 1_500);
  const skipped = ['postgres', 'redis', 'identity-provider'] as const;
  const { findings } = await check(
    'token-handler',
    { DIRECTORY_URL: `http://127.0.0.1:${port}` },
    { skipped: [...skipped], timeLimit: 5_000 },
  );
  for (const socket of sockets) socket.destroy();
  directory.close();
  expect(hangs).toBe(true);
  expect(findings).toEqual([
    'unreachable: DIRECTORY_URL: the directory did not respond as expected: unreachable (UND_ERR_SOCKET)',
  ]);
});

it('a skipped dependency is not contacted', async () => {
  const { code, checked } = await check('token-handler', { DATABASE_URL: nowhere }, { skipped: ['postgres'] });
  expect(code).toBe(0);
  expect(checked).toEqual(['settings', 'redis', 'identity-provider', 'directory']);
});

it('a schema that is newer than this release is a warning, because it is right after a rollback', async () => {
  const { url } = databases.forms;
  await query(url, "INSERT INTO schema_migrations (version, name, md5) VALUES (99, 'future', 'x')");
  const { code, findings } = await check('forms');
  await query(url, 'DELETE FROM schema_migrations WHERE version = 99');
  expect(findings).toEqual([expect.stringContaining('warning: DATABASE_URL: the schema is newer (migration 99)')]);
  expect(code).toBe(0);
});

it('an empty database is right for the process that creates its tables', async () => {
  const empty = await createTestDatabase();
  expect(await check('forms', { DATABASE_URL: empty.url })).toMatchObject({ code: 0, findings: [] });
  await migrate({ url: empty.url, directory: migrationsOf('forms'), lockTimeout: '1s', log: captureLog().log });
  expect(await check('forms', { DATABASE_URL: empty.url })).toMatchObject({ code: 0, findings: [] });
  await empty.drop();
});

describe('the command', () => {
  const main = join(import.meta.dirname, 'main.ts');
  const run = (args: string[], env: Env = {}) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((done) => {
      execFile(
        process.execPath,
        [main, ...args],
        { env: { PATH: process.env.PATH, ...env } },
        (error, stdout, stderr) => done({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });

  it('prints text or JSON, and never the value of a setting', async () => {
    const env = { ...envs.forms, CODE_KEY: 'canary', LOG_LEVEL: 'canary' };
    const args = ['--check', '--process', 'forms', '--skip', 'all'];
    const text = await run(args, env);
    expect(text.code).toBe(1);
    expect(text.stdout.split('\n')).toEqual([
      'forms: 2 problems (checked: settings)',
      expect.stringContaining('  error: LOG_LEVEL: '),
      '  error: CODE_KEY: must have at least 32 characters',
      '',
    ]);
    const json = await run([...args, '--json'], env);
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      processes: [{ process: 'forms', findings: [expect.anything(), expect.anything()] }],
    });
    expect(text.stdout + json.stdout + text.stderr + json.stderr).not.toContain('canary');
  });

  it('exits soon after its checks with 0, and prints help', async () => {
    expect(await run(['--check', '--process', 'forms'], envs.forms)).toMatchObject({ code: 0, stderr: '' });
    const { code, stdout } = await run(['--help']);
    expect(code).toBe(0);
    for (const option of ['--process', '--skip', '--time-limit', '--json', 'Exit codes'])
      expect(stdout).toContain(option);
  });

  it.each([
    [['--process', 'forms']],
    [['--check', '--process', 'x']],
    [['--check', '--skip', 'x']],
    [['--check', '--time-limit', 'x']],
    [['--check', '--skip', 'all', '--time-limit', 'PT1H1S']],
    [['--chek']],
  ])('exits 2 for %j, with one line', async (args) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^[^\n]+See --help\.\n$/);
  });
});
