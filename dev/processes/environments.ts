// Builds the environment variables of Formgate's processes on this machine. The chart sets the same names in a cluster.
import type { Urns } from '../../src/service/urn.ts';
import { applyClientId } from '../access/default-realms.ts';
import type { Secrets } from '../secrets.ts';

export interface Surroundings {
  urns: Urns;
  secrets: Secrets;
  /** Address of the identity provider for the processes; ends in `/auth`. Browsers use the gateway's address. */
  accessUrl: string;
  /** Database URL, port and metrics port of each process. */
  platformServer: Place;
  forms: Place;
  tokenHandler: Place;
  smtpPort: number;
  /** Address of the gateway. */
  publicUrl: string;
  seedFile: string;
  /**
   * URL of the Redis that stores the token handler's sessions. If undefined, the token handler keeps them in memory.
   */
  redisUrl: string | undefined;
}

export interface Place {
  databaseUrl: string;
  port: number;
  metricsPort: number;
}

type Environment = Record<string, string>;

export async function processEnvironments(
  around: Surroundings,
): Promise<Record<'platformServer' | 'forms' | 'tokenHandler' | 'reconciler', Environment>> {
  const { urns, secrets } = around;
  const directory = `http://127.0.0.1:${around.platformServer.port}/directory/v2`;
  return {
    platformServer: {
      ...common(around, around.platformServer),
      SMTP_URL: `smtp://127.0.0.1:${around.smtpPort}`,
      MAIL_FROM: 'Formgate <no-reply@example.com>',
      CODE_KEY: await secrets.get('platform-server-code-key'),
      SEED_FILE: around.seedFile,
    },
    forms: {
      ...common(around, around.forms),
      DIRECTORY_URL: directory,
      CLIENT_SECRET: await secrets.get(serviceSecretName(urns.service('form-service'))),
      CODE_KEY: await secrets.get('form-service-code-key'),
      PAGES: 'apply,console',
      PUBLIC_URL: around.publicUrl,
      APPLY_CLIENT_ID: applyClientId,
      APPLY_CLIENT_SECRET: await secrets.get(serviceSecretName(applyClientId)),
      APPLY_KEY_RING: keyRing(await secrets.get('form-service-key-ring')),
    },
    tokenHandler: {
      ...common(around, around.tokenHandler),
      DIRECTORY_URL: directory,
      CLIENT_SECRET: await secrets.get(serviceSecretName(urns.service('token-handler'))),
      KEY_RING: keyRing(await secrets.get('token-handler-key-ring')),
      // Uses the gateway's address, because the redirect URI registered with each client contains it. The address must
      // stay the same after a restart.
      PUBLIC_URL: around.publicUrl,
      CONSOLE_URL: around.publicUrl,
      ...(around.redisUrl === undefined ? { SESSION_STORE: 'memory' } : { REDIS_URL: around.redisUrl }),
    },
    reconciler: {
      URN_PREFIX: urns.prefix,
      ACCESS_SERVICE_URL: around.accessUrl,
      DATABASE_URL: around.forms.databaseUrl,
      DIRECTORY_URL: directory,
      CLIENT_SECRET: await secrets.get(serviceSecretName(urns.service('form-service'))),
      // Without this setting, the reconciler would use the cluster of the user's kubeconfig.
      CORE_CLIENTS: 'off',
      CONSOLE_URL: around.publicUrl,
    },
  };
}

/** Returns the name of a platform service's client secret in the secrets file. */
export function serviceSecretName(clientId: string): string {
  return `client:${clientId}`;
}

function keyRing(secret: string): string {
  return `embedded:${Buffer.from(secret, 'hex').toString('base64')}`;
}

function common({ urns, accessUrl, publicUrl }: Surroundings, place: Place): Environment {
  return {
    HOST: '127.0.0.1',
    PORT: String(place.port),
    METRICS_PORT: String(place.metricsPort),
    LOG_LEVEL: process.env.LOG_LEVEL || 'info',
    URN_PREFIX: urns.prefix,
    ACCESS_SERVICE_URL: accessUrl,
    ACCESS_SERVICE_PUBLIC_URL: `${publicUrl}/auth`,
    DATABASE_URL: place.databaseUrl,
    DRAIN_DEADLINE: 'PT5S',
  };
}

/** Formats an environment for `node --env-file`. */
export function environmentFile(environment: Environment): string {
  return Object.entries(environment)
    .map(([name, value]) => `${name}='${value}'\n`)
    .join('');
}
