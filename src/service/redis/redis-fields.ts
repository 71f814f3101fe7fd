// Defines the settings of Redis: a single server by URL, a group behind Sentinels, or a Cluster.
import { z } from 'zod';
import { csv, flag, isReadableUrl } from '../operations/config.ts';
import { excludesRule, needsRule, type SettingsRule } from '../operations/settings-rules.ts';

export interface RedisNode {
  host: string;
  port: number;
}

export type RedisTopology =
  | { kind: 'server'; url: string }
  | { kind: 'sentinel'; name: string; nodes: RedisNode[] }
  | { kind: 'cluster'; nodes: RedisNode[] };

export interface RedisSettings {
  topology: RedisTopology;
  username?: string | undefined;
  password?: string | undefined;
  /** Credentials for the Sentinels. */
  sentinelUsername?: string | undefined;
  sentinelPassword?: string | undefined;
  /** `ca` is a PEM text that replaces the certificate authorities of Node. */
  tls?: { ca?: string | undefined };
}

const nodes = (port: number) =>
  csv().transform((items, context) =>
    items.map((item) => {
      const node = parseNode(item, port);
      if (!node) context.addIssue('must be a list of host:port');
      return node ?? { host: '', port };
    }),
  );

export const redisFields = {
  REDIS_URL: z
    .string()
    .regex(/^rediss?:\/\/[^\s]+$/, 'must be a redis:// or rediss:// URL')
    .refine(isReadableUrl, 'must be a valid URL: percent-encode special characters of the password')
    .refine(hasDatabaseNumber, 'must have no path, or the number of a database as the path, such as /0')
    .optional()
    .describe('URL of a single Redis server; rediss:// uses TLS'),
  REDIS_SENTINELS: nodes(26_379).describe('host:port of the Redis Sentinels; replaces REDIS_URL'),
  REDIS_SENTINEL_NAME: z
    .string()
    .default('mymaster')
    .describe('Name under which the Sentinels monitor the Redis primary'),
  REDIS_SENTINEL_USERNAME: z.string().optional().describe('ACL user for the Sentinels'),
  REDIS_SENTINEL_PASSWORD: z.string().optional().describe('Password for the Sentinels'),
  REDIS_CLUSTER_NODES: nodes(6_379).describe('host:port of some nodes of a Redis Cluster; replaces REDIS_URL'),
  REDIS_USERNAME: z.string().optional().describe('ACL user for Redis, if REDIS_URL contains none'),
  REDIS_PASSWORD: z.string().optional().describe('Password for Redis, if REDIS_URL contains none'),
  REDIS_TLS: flag(false).describe(
    'Uses TLS to Redis and its Sentinels, also if REDIS_URL begins with redis://; a rediss:// URL needs no REDIS_TLS',
  ),
  REDIS_TLS_CA: z
    .string()
    .includes('BEGIN CERTIFICATE', { message: 'must be a certificate in PEM' })
    .optional()
    .describe(
      'Certificate of the authority that issued Redis’s certificate, in PEM; by default the authorities that Node.js trusts',
    ),
};

type RedisConfig = z.output<z.ZodObject<typeof redisFields>>;

type Credential = 'username' | 'password';

/** Rejects a credential that both the variable and the URL contain. The URL would override the variable. */
const credentialRule = (name: 'REDIS_USERNAME' | 'REDIS_PASSWORD', part: Credential): SettingsRule => ({
  names: [name, 'REDIS_URL'],
  holds: (values: RedisConfig) =>
    values[name] === undefined || values.REDIS_URL === undefined || new URL(values.REDIS_URL)[part] === '',
  problem: `must not be set: REDIS_URL contains a ${part}`,
});

export const redisRules: SettingsRule[] = [
  excludesRule('REDIS_SENTINELS', 'REDIS_URL'),
  excludesRule('REDIS_CLUSTER_NODES', 'REDIS_URL'),
  excludesRule('REDIS_CLUSTER_NODES', 'REDIS_SENTINELS'),
  needsRule('REDIS_SENTINEL_USERNAME', 'REDIS_SENTINELS'),
  needsRule('REDIS_SENTINEL_PASSWORD', 'REDIS_SENTINELS'),
  credentialRule('REDIS_USERNAME', 'username'),
  credentialRule('REDIS_PASSWORD', 'password'),
  {
    names: ['REDIS_TLS_CA', 'REDIS_TLS', 'REDIS_URL'],
    holds: (values: RedisConfig) => values.REDIS_TLS_CA === undefined || usesTls(values),
    problem: 'has no effect without TLS: set REDIS_TLS, or use a rediss:// URL',
  },
];

const usesTls = ({ REDIS_TLS, REDIS_URL }: RedisConfig) => REDIS_TLS || (REDIS_URL?.startsWith('rediss:') ?? false);

/**
 * Returns the settings of the configured Redis; undefined if no Redis is configured. `config` must satisfy
 * `redisRules`.
 */
export function redisSettings(config: RedisConfig): RedisSettings | undefined {
  const { REDIS_URL: url, REDIS_SENTINELS: sentinels, REDIS_CLUSTER_NODES: cluster } = config;
  const topology: RedisTopology | undefined =
    url !== undefined
      ? { kind: 'server', url: usesTls(config) ? url.replace(/^redis:/, 'rediss:') : url }
      : sentinels.length > 0
        ? { kind: 'sentinel', name: config.REDIS_SENTINEL_NAME, nodes: sentinels }
        : cluster.length > 0
          ? { kind: 'cluster', nodes: cluster }
          : undefined;
  if (!topology) return undefined;
  return {
    topology,
    username: config.REDIS_USERNAME,
    password: config.REDIS_PASSWORD,
    sentinelUsername: config.REDIS_SENTINEL_USERNAME,
    sentinelPassword: config.REDIS_SENTINEL_PASSWORD,
    ...(usesTls(config) && { tls: { ca: config.REDIS_TLS_CA } }),
  };
}

/** True if the URL has no path, or the number of a database as the path. Also true if the URL cannot be read at all. */
function hasDatabaseNumber(url: string): boolean {
  return !isReadableUrl(url) || /^\/?\d*$/.test(new URL(url).pathname);
}

function parseNode(item: string, defaultPort: number): RedisNode | undefined {
  const url = URL.canParse(`redis://${item}`) ? new URL(`redis://${item}`) : undefined;
  if (!url?.hostname || url.username || url.password || url.search || url.hash || url.pathname.length > 1)
    return undefined;
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: url.port ? Number(url.port) : defaultPort };
}
