// The processes that the command `config` can check. For each process: its settings, and how to check its dependencies.
import { type ReconcilerConfig, settings as reconciler, runConnections } from '../../../reconciler/config.ts';
import { type FormsConfig, settings as forms } from '../../forms/config.ts';
import { formMigrations } from '../../forms/expiry/migrations.ts';
import { mostConnections } from '../../forms/pools.ts';
import type { Platform } from '../../platform/platform.ts';
import { jobConnections, type PlatformServerConfig, settings as platformServer } from '../../platform-server/config.ts';
import type { ProcessSettings } from '../../service/operations/config.ts';
import { programFile } from '../../service/program-files.ts';
import { redisFields, redisSettings } from '../../service/redis/redis-fields.ts';
import { changeConnections } from '../../token-handler/clients/clients.ts';
import { type TokenHandlerConfig, settings as tokenHandler } from '../../token-handler/config.ts';
import type { Dependency, ProcessName } from './arguments.ts';
import { checkDatabase } from './database-check.ts';
import type { Finding } from './finding.ts';
import { checkKeyRing } from './key-ring-check.ts';
import { checkMail } from './mail-check.ts';
import { type AccountConfig, checkAccount, checkDirectory, checkProvider, openPlatform } from './platform-checks.ts';
import { checkRedis } from './redis-check.ts';

/** The check of one dependency. */
export interface DependencyCheck {
  dependency: Dependency;
  /** Settings that the check needs. The check runs only if all of them are valid. */
  names: string[];
  /** `timeLimit` is in milliseconds. */
  run(values: never, context: { env: NodeJS.ProcessEnv; timeLimit: number }): Promise<Finding[]>;
}

export interface CheckedProcess {
  settings: ProcessSettings;
  dependencies: DependencyCheck[];
}

const migrationsOf = (name: string) => programFile(`src/${name}/migrations`);
const provider = ['ACCESS_SERVICE_URL', 'ACCESS_SERVICE_PUBLIC_URL'];
const account = ['ACCESS_SERVICE_URL', 'URN_PREFIX', 'DIRECTORY_URL', 'CLIENT_ID', 'CLIENT_SECRET'];
const platform = [...account, 'PLATFORM_CACHE_TTL', 'PLATFORM_TIMEOUT'];

export const checkedProcesses: Readonly<Record<ProcessName, CheckedProcess>> = {
  forms: {
    settings: forms,
    dependencies: [
      {
        dependency: 'postgres',
        names: ['DATABASE_URL', 'DATABASE_POOL_SIZE'],
        run: (values: FormsConfig, { timeLimit }) =>
          checkDatabase({
            ...{ url: values.DATABASE_URL, directory: formMigrations.directory, timeLimit },
            connections: mostConnections(values),
          }),
      },
      providerCheck(),
      accountCheck('form-service'),
      intakeCheck(),
      directoryCheck('form-service', [
        'tenant-service:v2',
        'configuration-service:v2',
        'notification-service:v1',
        'event-service:v1',
      ]),
      fileServiceCheck(),
    ],
  },
  'token-handler': {
    settings: tokenHandler,
    dependencies: [
      {
        dependency: 'postgres',
        names: ['DATABASE_URL', 'DATABASE_POOL_SIZE', 'KEY_RING'],
        run: (values: TokenHandlerConfig, { timeLimit }) =>
          checkDatabase({
            ...{ url: values.DATABASE_URL, directory: migrationsOf('token-handler'), timeLimit },
            connections: values.DATABASE_POOL_SIZE + changeConnections,
            inspect: (client) => checkKeyRing(client, values.KEY_RING),
          }),
      },
      {
        dependency: 'redis',
        names: Object.keys(redisFields),
        run: async (values: TokenHandlerConfig, { timeLimit }) => {
          const settings = redisSettings(values);
          return settings ? checkRedis(settings, timeLimit) : [];
        },
      },
      providerCheck(),
      accountCheck('token-handler'),
      directoryCheck('token-handler', ['tenant-service:v2', 'configuration-service:v2', 'event-service:v1']),
    ],
  },
  'platform-server': {
    settings: platformServer,
    dependencies: [
      {
        dependency: 'postgres',
        names: ['DATABASE_URL', 'DATABASE_POOL_SIZE', 'WORKER_CONCURRENCY'],
        run: (values: PlatformServerConfig, { timeLimit }) =>
          checkDatabase({
            ...{ url: values.DATABASE_URL, directory: migrationsOf('platform-server'), timeLimit },
            connections: values.DATABASE_POOL_SIZE + jobConnections(values),
          }),
      },
      providerCheck(),
      {
        dependency: 'mail',
        names: ['SMTP_URL'],
        run: (values: PlatformServerConfig, { timeLimit }) => checkMail(values.SMTP_URL, timeLimit),
      },
    ],
  },
  reconciler: {
    settings: reconciler,
    dependencies: [
      {
        dependency: 'postgres',
        names: ['DATABASE_URL'],
        run: (values: ReconcilerConfig, { timeLimit }) =>
          checkDatabase({
            url: values.DATABASE_URL,
            directory: formMigrations.directory,
            timeLimit,
            owner: 'the form service',
            connections: runConnections,
          }),
      },
      accountCheck('form-service'),
      directoryCheck('form-service', ['tenant-service:v2', 'configuration-service:v2', 'notification-service:v1']),
    ],
  },
};

function providerCheck(): DependencyCheck {
  return { dependency: 'identity-provider', names: provider, run: checkProvider };
}

function accountCheck(service: string): DependencyCheck {
  const run = (values: AccountConfig, { env }: { env: NodeJS.ProcessEnv }) =>
    withPlatform(values, service, env, (opened) => checkAccount(opened, 'CLIENT_SECRET'));
  return { dependency: 'identity-provider', names: ['CLIENT_SECRET', ...platform], run };
}

/** Checks the account of the intake application, if APPLY_CLIENT_ID and APPLY_CLIENT_SECRET are set. */
function intakeCheck(): DependencyCheck {
  return {
    dependency: 'identity-provider',
    names: ['APPLY_CLIENT_SECRET', 'APPLY_CLIENT_ID', ...platform],
    run: async (values: FormsConfig, { env }) => {
      const { APPLY_CLIENT_ID: id, APPLY_CLIENT_SECRET: secret } = values;
      if (id === undefined || secret === undefined) return [];
      return withPlatform(values, 'form-service', env, (opened) =>
        checkAccount(opened, 'APPLY_CLIENT_SECRET', opened.accountOf(id, secret)),
      );
    },
  };
}

function directoryCheck(service: string, services: readonly string[]): DependencyCheck {
  const run = (values: AccountConfig, { env }: { env: NodeJS.ProcessEnv }) =>
    withPlatform(values, service, env, (opened) => checkDirectory(opened, { config: values, services }));
  return { dependency: 'directory', names: ['DIRECTORY_URL', ...platform], run };
}

/**
 * Checks that the directory has the file service, if deletions need it. The intake application does not need it: its
 * pages offer no uploads if the directory has no entry.
 */
function fileServiceCheck(): DependencyCheck {
  const { dependency, names, run } = directoryCheck('form-service', ['file-service:v1']);
  return {
    dependency,
    names: [...names, 'DELETE_FILES'],
    run: async (values: FormsConfig, context) => (values.DELETE_FILES ? run(values as never, context) : []),
  };
}

async function withPlatform(
  config: AccountConfig,
  service: string,
  env: NodeJS.ProcessEnv,
  work: (opened: Platform) => Promise<Finding[]>,
): Promise<Finding[]> {
  const opened = openPlatform(config, service, env);
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
