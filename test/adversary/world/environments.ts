// The environments of the replicas and of the reconciler, and the seed of the platform server's directory.
import { randomBytes } from 'node:crypto';
import type { Seed } from '../../../src/platform-server/seed-file.ts';
import type { Tenant } from '../../../src/service/auth/identity.ts';
import { type TestAccess, testServiceSecret } from '../../support/access.ts';
import type { Databases } from './databases.ts';
import type { EdgePorts } from './edge.ts';
import type { Service } from './replica.ts';
import { basePath } from './upstream.ts';

export interface Surroundings {
  access: TestAccess;
  databases: Databases['urls'];
  edge: EdgePorts;
  /** Environment variables that tell the token handler where Redis is. */
  redisEnv: Environment;
  smtpUrl: string;
  seedFile: string;
  hostileUpstreamPort: number;
  stuckTlsPort: number;
  /** A port that nothing listens on. */
  deadPort: number;
}

type Environment = Record<string, string>;

const apis = {
  'configuration-service:v2': '/configuration/v2',
  'tenant-service:v2': '/api/tenant/v2',
  'event-service:v1': '/event/v1',
  'notification-service:v1': '/subscription/v1',
  'directory-service:v2': '/directory/v2',
};

/**
 * Base URLs of the targets of the client `web`, keyed by target id. The platform's directory contains the same URLs.
 */
const targetsOf = (around: Pick<Surroundings, 'edge' | 'hostileUpstreamPort' | 'stuckTlsPort' | 'deadPort'>) => ({
  api: `http://127.0.0.1:${around.edge.upstream}${basePath}`,
  hostile: `http://127.0.0.1:${around.hostileUpstreamPort}/h`,
  stuck: `https://127.0.0.1:${around.stuckTlsPort}/s`,
  dead: `http://127.0.0.1:${around.deadPort}/d`,
});

export function seedOf(around: Surroundings, tenants: Record<'honest' | 'hostile', Tenant>): Seed {
  const platform = `http://127.0.0.1:${around.edge['platform-server']}`;
  const tenant = ({ id, name, realm }: Tenant) => ({
    ...{ id: id.split('/').at(-1) ?? '', name, realm },
    adminEmail: `admin@${realm}.example.com`,
  });
  return {
    tenants: [tenant(tenants.honest), tenant(tenants.hostile)],
    directory: [
      ...Object.entries(apis).map(([service, path]) => ({ namespace: 'platform', service, url: `${platform}${path}` })),
      ...Object.entries(targetsOf(around)).map(([service, url]) => ({ namespace: 'demo', service, url })),
    ],
  };
}

export function environmentsOf(around: Surroundings): Record<Service | 'reconciler', Environment> {
  const { access, databases } = around;
  const directory = `http://127.0.0.1:${around.edge['platform-server']}/directory/v2`;
  const common = {
    LOG_LEVEL: 'info',
    URN_PREFIX: access.urns.prefix,
    ACCESS_SERVICE_URL: access.url,
    DRAIN_DEADLINE: 'PT3S',
  };
  const formService = {
    DATABASE_URL: databases.forms,
    DIRECTORY_URL: directory,
    CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
  };
  const { DRAIN_DEADLINE: _none, ...shared } = common;
  return {
    'platform-server': {
      ...common,
      DATABASE_URL: databases.platform,
      SMTP_URL: around.smtpUrl,
      MAIL_FROM: 'Forms <forms@platform.example.org>',
      CODE_KEY: 'a key of tests with more than 32 characters',
      SEED_FILE: around.seedFile,
    },
    forms: { ...common, ...formService, CODE_KEY: 'another key of tests with more than 32 characters' },
    'token-handler': {
      ...common,
      DATABASE_URL: databases.tokenHandler,
      DIRECTORY_URL: directory,
      CLIENT_SECRET: testServiceSecret(access.urns.service('token-handler')),
      KEY_RING: `test:${randomBytes(32).toString('base64')}`,
      ...around.redisEnv,
      PLATFORM_CACHE_TTL: 'PT5S',
      // The limit is raised, because here all people sign in from one client address.
      SIGN_IN_LIMIT: '1000000',
    },
    reconciler: { ...shared, ...formService, CORE_CLIENTS: 'off' },
  };
}
