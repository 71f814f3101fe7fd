// Tests that the process of each container accepts its environment: every variable is known, and the values are valid
// together.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { z } from 'zod';
import { parseConfig } from '../../src/service/operations/config.ts';
import { chartParts } from '../rules/chart-values.ts';
import { type Container, helms, podTemplates, type Rendering, render, type Volume, valueSets } from './helm.ts';

const partOf: Record<string, string> = {
  forms: 'forms',
  'token-handler': 'tokenHandler',
  'platform-server': 'platformServer',
  reconciler: 'reconciler',
};

/** Sample values for the variables that come from Secrets. */
const secrets: Record<string, string> = {
  DATABASE_URL: 'postgres://user:password@postgres/database',
  CLIENT_SECRET: 'a secret of an account',
  CODE_KEY: 'a key of at least thirty-two characters',
  KEY_RING: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  APPLY_CLIENT_SECRET: 'a secret of an account',
  APPLY_KEY_RING: `k1:${Buffer.alloc(32, 2).toString('base64')}`,
  PROXY_PASSWORD: 'password',
  REDIS_URL: 'redis://redis:6379',
  REDIS_PASSWORD: 'password',
  REDIS_SENTINEL_PASSWORD: 'password',
  SMTP_URL: 'smtp://mail:25',
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret',
};

const folderOfSecrets = '/etc/formgate/secrets/';
/** Returns the setting that a variable gives. The variable may name a file with the setting's value. */
const settingOf = ({ name, value }: { name: string; value?: string }) =>
  value?.startsWith(folderOfSecrets) ? name.replace(/_FILE$/, '') : name;

function environmentOf({ env = [] }: Container, volumes: Volume[] = []): Record<string, string> {
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? []);
  const files = sources.flatMap(({ secret }) => secret.items.map(({ path }) => `${folderOfSecrets}${path}`));
  return Object.fromEntries(
    env.map((variable) => {
      const { value, valueFrom } = variable;
      const name = settingOf(variable);
      const held = valueFrom || files.includes(value ?? '') ? secrets[name] : value;
      if (held === undefined) throw new Error(`${name} has neither a value nor a known Secret`);
      return [name, held];
    }),
  );
}

/** Variables that Node itself reads, and variables that extended-values.yaml adds. */
const ofNode = ['NODE_EXTRA_CA_CERTS', 'REGION', 'PROXY_PASSWORD'];

const [helm = ''] = helms();

/** Throws unless every process accepts its environment, without unknown variables. */
async function parseEnvironments(options: Rendering): Promise<void> {
  const pods = podTemplates(await render(helm, options)).filter(({ component }) => component in partOf);
  expect(pods.length).toBeGreaterThanOrEqual(2);
  for (const { component, spec } of pods) {
    const { schema, callsPlatform } = chartParts[partOf[component] ?? ''] ?? {};
    const [container] = spec.containers;
    if (!schema || !container) throw new Error(`${component} is not a component with a container`);
    const environment = environmentOf(container, spec.volumes);
    const unknown = Object.keys(environment).filter(
      (name) => !(name in schema.shape) && !ofNode.includes(name) && !(callsPlatform && name.startsWith('DIR_')),
    );
    expect(unknown, component).toEqual([]);
    parseConfig(schema, environment);
  }
}

describe.each(valueSets().map((file) => [basename(file), file]))('with %s', (_name, file) => {
  test('every process accepts its environment, without unknown variables', async () => {
    await parseEnvironments({ files: [file] });
  });
});

test('a process has the same secrets as files, if secrets.asFiles is set', async () => {
  const files = valueSets().filter((file) => file.endsWith('secret-files-values.yaml'));
  const environments = async (asFiles: boolean) => {
    const pods = podTemplates(await render(helm, { files, set: { 'secrets.asFiles': asFiles } }));
    expect(JSON.stringify(pods).includes('secretKeyRef')).toBe(!asFiles);
    return pods.map(({ of, spec }) => [of, spec.containers.map((container) => environmentOf(container, spec.volumes))]);
  };
  expect(await environments(true)).toEqual(await environments(false));
});

const minimal = valueSets().filter((file) => file.endsWith('minimal-values.yaml'));
const noRedis = { 'redis.url.existingSecret.name': '' };
const bundled = { ...noRedis, 'bundled.enabled': true };
const stores = { 'forms.database.existingSecret.name': '', 'tokenHandler.database.existingSecret.name': '' };
const inMemory = { 'tokenHandler.env.SESSION_STORE': 'memory', 'tokenHandler.replicas': 1 };
const site = (host: string) => ({
  ...{ 'forms.pages.console.enabled': true, 'ingress.enabled': true, 'ingress.hosts': [host] },
  'networkPolicy.ingressController.podLabels': { 'app.kubernetes.io/name': 'envoy' },
});
const consoleUrl = { 'tokenHandler.consoleUrl': 'https://forms.example.org' };
const insecure = { 'tokenHandler.allowInsecureRedirectUris': true };

describe('values with which a process would not start are refused by name', () => {
  test.each([
    [
      'the bundled Redis and sessions in memory',
      { ...bundled, ...inMemory },
      'tokenHandler.env.SESSION_STORE: bundled',
    ],
    ['a Redis and sessions in memory', inMemory, 'tokenHandler.env.SESSION_STORE: sessions in memory need no Redis'],
    ['the bundled Redis and a password', { ...bundled, 'redis.password.value': 'password' }, 'redis: bundled.enabled'],
    ['the bundled Redis and a user', { ...bundled, 'redis.username': 'formgate' }, 'redis: bundled.enabled'],
    ['the bundled Redis and TLS', { ...bundled, 'redis.tls.enabled': true }, 'redis: bundled.enabled'],
    [
      'a certificate authority of Redis for a connection without TLS',
      { ...noRedis, 'redis.url.value': 'redis://redis:6379', 'redis.tls.ca': '-----BEGIN CERTIFICATE-----' },
      'redis.tls: set enabled, or remove ca',
    ],
    ['a password of Sentinels without Sentinels', { 'redis.sentinelPassword.value': 'a' }, 'redis.sentinels: set'],
    ['a console on a host without TLS', site('forms.example.org'), 'tokenHandler.consoleUrl: set the https URL'],
    ['a console at an http URL', { 'tokenHandler.consoleUrl': 'http://a.example.org' }, 'tokenHandler.consoleUrl: set'],
    [
      'a console on a wildcard host',
      { ...site('*.example.org'), 'ingress.tls.enabled': true },
      'tokenHandler.consoleUrl: set the public URL of the site that serves the console; https://*.example.org has a wildcard',
    ],
  ])('%s', async (_what, set, words) => {
    await expect(render(helm, { files: minimal, set })).rejects.toThrow(words);
  });

  test.each([
    ['the bundled stores', { ...bundled, ...stores }],
    ['sessions in memory without Redis', { ...noRedis, ...inMemory }],
    ['TLS for a Redis whose URL begins with redis://', { 'redis.tls.enabled': true }],
    ['a console on a host with TLS', { ...site('forms.example.org'), 'ingress.tls.enabled': true }],
    ['a console behind a proxy that terminates TLS', { ...site('*.example.org'), ...consoleUrl }],
    ['a console without TLS where http is allowed', { ...site('forms.example.org'), ...insecure }],
    ['a console of this machine', site('localhost')],
  ])('but not %s, which the processes accept', async (_what, set) => {
    await parseEnvironments({ files: minimal, set });
  });
});

test('corsOrigins allows no origin with the word none, and must not be empty', async () => {
  await parseEnvironments({ files: minimal, set: { corsOrigins: 'none' } });
  await expect(render(helm, { files: minimal, set: { corsOrigins: '' } })).rejects.toThrow('corsOrigins');
});

test('every service can listen at an IPv6 address, as the operations guide says; the reconciler listens at none', async () => {
  const platformServer = valueSets().filter((file) => file.endsWith('platform-server-values.yaml'));
  const host = (part: string) => ({ [`${part}.env.HOST`]: '::' });
  const services = { ...host('forms'), ...host('tokenHandler'), ...host('platformServer') };
  await parseEnvironments({ files: platformServer, set: services });
  await expect(render(helm, { files: platformServer, set: host('reconciler') })).rejects.toThrow('HOST');
});

test('the schema of values rejects exactly those settings in env that the chart sets itself', async () => {
  const seen: Record<string, Set<string>> = {};
  for (const file of valueSets())
    for (const { component, spec } of podTemplates(await render(helm, { files: [file] })))
      for (const name of (spec.containers[0]?.env ?? []).map(settingOf)) {
        // Skips variables that the values file itself sets.
        if (name in (parse(readFileSync(file, 'utf8'))[partOf[component] ?? '']?.env ?? {})) continue;
        seen[component] ??= new Set();
        seen[component].add(name);
      }
  for (const [component, part] of Object.entries(partOf)) {
    const { setByChart = {} } = chartParts[part] ?? {};
    const set = [...(seen[component] ?? [])].filter((name) => !ofNode.includes(name));
    const message = `${component}: _environment.tpl sets other settings than chart-values.ts says (setByChart)`;
    expect(set.filter((name) => !name.startsWith('DIR_')).sort(), message).toEqual(Object.keys(setByChart).sort());
  }
});

test('a value of the chart has the same default as the setting that it determines, except where a cluster differs', async () => {
  const secret = (name: string) => [`platformServer.${name}.existingSecret.name`, 'platform-server'];
  const set = {
    ...{ 'directory.url': '', 'platformServer.enabled': true, 'platformServer.mailFrom': 'no-reply@example.org' },
    ...Object.fromEntries(['database', 'codeKey', 'smtp'].map(secret)),
  };
  const differing: string[] = [];
  for (const { component, spec } of podTemplates(await render(helm, { files: minimal, set })))
    for (const { name, value } of spec.containers[0]?.env ?? []) {
      const setting: z.ZodType | undefined = chartParts[partOf[component] ?? '']?.schema.shape[name];
      const usual = setting?.safeParse(undefined);
      if (usual?.success && !isDeepStrictEqual(setting?.parse(value), usual.data))
        differing.push(`${component}: ${name}=${value}`);
    }
  // In a cluster, the ingress is a trusted proxy. The chart creates the seed file itself.
  expect(differing.sort()).toEqual([
    'forms: TRUSTED_PROXIES=1',
    'platform-server: SEED_FILE=/etc/formgate/seed/seed.json',
    'platform-server: TRUSTED_PROXIES=1',
    'token-handler: TRUSTED_PROXIES=1',
  ]);
});

test('settings that the chart does not set can be given in env as text', async () => {
  const objects = await render(helm, {
    files: valueSets().filter((file) => file.endsWith('minimal-values.yaml')),
    set: { 'forms.env.CODE_LIFETIME': 'PT5M', 'tokenHandler.env.DIR_EXAMPLE_API': 'https://api.example.org' },
  });
  const environments = Object.fromEntries(
    podTemplates(objects).map((pod) => [pod.component, pod.spec.containers[0]?.env]),
  );
  expect(environments.forms).toContainEqual({ name: 'CODE_LIFETIME', value: 'PT5M' });
  const given = { name: 'DIR_EXAMPLE_API', value: 'https://api.example.org' };
  expect(environments['token-handler']).toContainEqual(given);
  // The reconciler checks whether the upstreams of the token handler are known.
  expect(environments.reconciler).toContainEqual(given);
  expect(environments.forms).not.toContainEqual(given);
});

test('a directory entry of the form service reaches the reconciler, which calls the same services', async () => {
  const objects = await render(helm, {
    files: valueSets().filter((file) => file.endsWith('minimal-values.yaml')),
    set: {
      'forms.env': { CODE_LIFETIME: 'PT5M', DIR_A_B: 'https://one.example.org', DIR_C_D: 'https://two.example.org' },
      'tokenHandler.env.DIR_C_D': 'https://three.example.org',
    },
  });
  const reconciler = podTemplates(objects).find(({ component }) => component === 'reconciler');
  const variables = reconciler?.spec.containers[0]?.env ?? [];
  expect(variables.filter(({ name }) => /^DIR_|^CODE_/.test(name))).toEqual([
    { name: 'DIR_A_B', value: 'https://one.example.org' },
    { name: 'DIR_C_D', value: 'https://three.example.org' },
  ]);
});

test('a directory entry of the reconciler takes precedence over that of the token handler', async () => {
  const objects = await render(helm, {
    files: valueSets().filter((file) => file.endsWith('minimal-values.yaml')),
    set: { 'tokenHandler.env.DIR_A_B': 'https://one.example.org', 'reconciler.env.DIR_A_B': 'https://two.example.org' },
  });
  const reconciler = podTemplates(objects).find(({ component }) => component === 'reconciler');
  expect(reconciler?.spec.containers[0]?.env?.filter(({ name }) => name === 'DIR_A_B')).toEqual([
    { name: 'DIR_A_B', value: 'https://two.example.org' },
  ]);
});
