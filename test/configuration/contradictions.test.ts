// Tests that every process refuses to start if its settings contradict each other. The tests of ordered, dependent and
// exclusive settings are generated from the rules of each process; all other rules need a case below.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { settings as reconciler } from '../../reconciler/config.ts';
import { settings as forms } from '../../src/forms/config.ts';
import { settings as platformServer } from '../../src/platform-server/config.ts';
import {
  ConfigError,
  inspectSettings,
  type ProcessSettings,
  parseSettings,
} from '../../src/service/operations/config.ts';
import type { RuleForm, SettingsRule } from '../../src/service/operations/settings-rules.ts';
import { settings as tokenHandler } from '../../src/token-handler/config.ts';

type Env = Record<string, string | undefined>;

const key = (seed: number) => `k1:${Buffer.alloc(32, seed).toString('base64')}`;
const common = { DATABASE_URL: 'postgres://postgres/forms', ACCESS_SERVICE_URL: 'https://login.example.org/auth' };
const account = { DIRECTORY_URL: 'http://directory:8080/directory/v2', CLIENT_SECRET: 'canary-of-a-secret' };

/** Each process with a valid environment. */
const processes: Record<string, { settings: ProcessSettings; env: Env }> = {
  forms: { settings: forms, env: { ...common, ...account, CODE_KEY: 'canary'.repeat(6) } },
  'token-handler': {
    settings: tokenHandler,
    env: { ...common, ...account, KEY_RING: key(1), REDIS_URL: 'redis://redis:6379' },
  },
  'platform-server': {
    settings: platformServer,
    env: { ...common, CODE_KEY: 'canary'.repeat(6), SMTP_URL: 'smtp://mail', MAIL_FROM: 'a@example.org' },
  },
  reconciler: { settings: reconciler, env: { ...common, ...account } },
};

/** Valid values of settings that have no default. */
const samples: Record<string, string> = {
  APPLY_CLIENT_ID: 'intake',
  APPLY_CLIENT_SECRET: 'canary-of-intake',
  APPLY_KEY_RING: key(2),
  REDIS_URL: 'redis://redis:6379',
  REDIS_SENTINELS: 'sentinel',
  REDIS_CLUSTER_NODES: 'node',
  REDIS_SENTINEL_USERNAME: 'canary',
  REDIS_SENTINEL_PASSWORD: 'canary',
};

interface Case {
  bad: Env[];
  good: Env[];
}

const tenantIssuer = { TENANT_ISSUERS: 'town=https://login.example.org/auth/realms/town' };
const httpConsole = { CONSOLE_URL: 'http://forms.example.org', ALLOW_INSECURE_REDIRECT_URIS: 'true' };
const intake = { APPLY_CLIENT_ID: 'intake', APPLY_CLIENT_SECRET: 'canary-of-intake', APPLY_KEY_RING: key(2) };
const certificate = { REDIS_TLS_CA: '-----BEGIN CERTIFICATE-----' };
const noRedis = { REDIS_URL: undefined };

/**
 * A case for each rule that is not about ordered, dependent or exclusive settings. The key is the rule's first setting,
 * followed by the problem.
 */
const cases: Record<string, Case> = {
  'TENANT_ISSUERS must not map realms of ACCESS_SERVICE_URL or ACCESS_SERVICE_PUBLIC_URL, which belong to tenants already':
    { bad: [tenantIssuer], good: [{ TENANT_ISSUERS: 'town=https://town.example.org' }] },
  'METRICS_PORT must differ from PORT': { bad: [{ PORT: '9090' }], good: [{ PORT: '0', METRICS_PORT: '0' }] },
  'APPLY_CLIENT_SECRET is required with APPLY_CLIENT_ID': {
    bad: [{ ...intake, APPLY_CLIENT_SECRET: undefined }],
    good: [intake],
  },
  'APPLY_KEY_RING is required with APPLY_CLIENT_ID': {
    bad: [{ ...intake, APPLY_KEY_RING: undefined }],
    good: [intake],
  },
  'PAGES must not name apply without APPLY_CLIENT_ID: its pages call the intake application': {
    bad: [{ PAGES: 'apply' }, { PAGES: 'console,apply' }],
    good: [{ PAGES: 'console' }, { ...intake, PAGES: 'apply' }],
  },
  'REDIS_USERNAME must not be set: REDIS_URL contains a username': {
    bad: [{ REDIS_URL: 'redis://one:canary@redis', REDIS_USERNAME: 'two' }],
    good: [{ REDIS_USERNAME: 'one' }, { REDIS_URL: 'redis://:canary@redis', REDIS_USERNAME: 'one' }],
  },
  'REDIS_PASSWORD must not be set: REDIS_URL contains a password': {
    bad: [{ REDIS_URL: 'redis://:canary@redis', REDIS_PASSWORD: 'canary' }],
    good: [{ REDIS_PASSWORD: 'canary' }, { REDIS_URL: 'redis://one@redis', REDIS_PASSWORD: 'canary' }],
  },
  'REDIS_TLS_CA has no effect without TLS: set REDIS_TLS, or use a rediss:// URL': {
    bad: [certificate],
    good: [
      { ...certificate, REDIS_URL: 'rediss://redis' },
      { ...certificate, REDIS_TLS: 'true' },
      { ...certificate, ...noRedis, REDIS_CLUSTER_NODES: 'node', REDIS_TLS: 'true' },
    ],
  },
  'SESSION_STORE is memory, but a Redis is configured': {
    bad: [{ SESSION_STORE: 'memory' }, { ...noRedis, REDIS_SENTINELS: 'sentinel', SESSION_STORE: 'memory' }],
    good: [{ ...noRedis, SESSION_STORE: 'memory' }],
  },
  'REDIS_URL is required, unless SESSION_STORE is memory': {
    bad: [noRedis],
    good: [{ ...noRedis, REDIS_SENTINELS: 'sentinel' }],
  },
  'BUILDER_APP_URL must be https, except for localhost, 127.0.0.1 and [::1], unless ALLOW_INSECURE_REDIRECT_URIS is true':
    {
      bad: [{ BUILDER_APP_URL: 'http://builder.example.org' }],
      good: [{ BUILDER_APP_URL: 'http://builder.example.org', ALLOW_INSECURE_REDIRECT_URIS: 'true' }],
    },
  'CONSOLE_URL must be https, except for localhost, 127.0.0.1 and [::1], unless ALLOW_INSECURE_REDIRECT_URIS is true': {
    bad: [{ CONSOLE_URL: 'http://forms.example.org' }],
    good: [httpConsole, { CONSOLE_URL: 'http://localhost:8080' }, { CONSOLE_URL: 'https://forms.example.org' }],
  },
  'OTEL_TRACES_SAMPLER_ARG needs OTEL_TRACES_SAMPLER traceidratio or parentbased_traceidratio': {
    bad: [{ OTEL_TRACES_SAMPLER_ARG: '0.1' }, { OTEL_TRACES_SAMPLER_ARG: '0.1', OTEL_TRACES_SAMPLER: 'always_on' }],
    good: [{ OTEL_TRACES_SAMPLER_ARG: '0.1', OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' }],
  },
  'SESSION_COOKIE must not begin with __Host- or __Secure- if CONSOLE_URL is http': {
    bad: [{ ...httpConsole, SESSION_COOKIE: '__Host-session' }],
    good: [httpConsole, { SESSION_COOKIE: '__Host-session' }],
  },
};

describe.each(Object.entries(processes))('the settings of %s', (_name, { settings, env }) => {
  const problemsOf = (changes: Env) => {
    try {
      parseSettings(settings, { ...env, ...changes });
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.message).not.toContain('canary');
      return error.problems.map(({ name, problem }) => `${name} ${problem}`);
    }
  };
  const { rules = [] } = settings;
  const titled = rules.map((rule) => [`${rule.names[0]} ${rule.problem}`, rule] as const);

  it('are valid in this test, and have rules', () => {
    expect(problemsOf({})).toEqual([]);
    expect(rules.length).toBeGreaterThan(0);
  });

  it.each(titled)('%s', (title, rule) => {
    const { bad, good } = caseOf(title, rule, settings.schema);
    for (const changes of good) expect(problemsOf(changes)).not.toContain(title);
    for (const changes of bad) {
      expect(problemsOf(changes)).toContain(title);
      const withOther = problemsOf({ ...changes, LOG_LEVEL: 'loud' });
      expect(withOther.filter((problem) => problem === title || problem.startsWith('LOG_LEVEL'))).toHaveLength(2);
    }
  });
});

it('what the settings name is checked together with them: a duplicate tenant in the seed file, and a wrong directory variable', () => {
  const problemsOf = (name: string, changes: Env) => {
    const { settings, env } = processes[name] ?? { settings: forms, env: {} };
    try {
      parseSettings(settings, { ...env, ...changes });
      return [];
    } catch (error) {
      return (error as ConfigError).problems.map((one) => `${one.name}: ${one.problem}`);
    }
  };
  const folder = mkdtempSync(join(tmpdir(), 'formgate-seed-'));
  const SEED_FILE = join(folder, 'seed.json');
  const tenant = { id: 'a'.repeat(24), name: 'Town', realm: 'town' };
  writeFileSync(SEED_FILE, JSON.stringify({ tenants: [tenant, { ...tenant, id: 'b'.repeat(24), name: 'City' }] }));
  expect(problemsOf('platform-server', { SEED_FILE, LOG_LEVEL: 'loud' })).toEqual([
    expect.stringContaining('LOG_LEVEL: '),
    'SEED_FILE: tenants.1.realm: duplicates the realm of tenants.0',
  ]);
  rmSync(folder, { recursive: true });
  expect(problemsOf('platform-server', { SEED_FILE })).toEqual(['SEED_FILE: cannot be read as JSON']);
  expect(problemsOf('reconciler', { WARN_BEFORE: 'P20D', DIR_PLATFORM_EVENT_SERVICE: 'events:8080' })).toEqual([
    'WARN_BEFORE: must be shorter than LOCK_AFTER',
    'DIR_PLATFORM_EVENT_SERVICE: must be an http or https URL without credentials',
  ]);
});

it('an unreadable secret file of an optional setting does not count as no setting', () => {
  const { env } = processes['token-handler'] ?? { env: {} };
  const { invalid } = inspectSettings(tokenHandler, { ...env, REDIS_PASSWORD_FILE: '/nowhere', PORT: 'x' });
  expect([...invalid].sort()).toEqual(['PORT', 'REDIS_PASSWORD']);
});

it.each([
  ['HOST', 'http://0.0.0.0'],
  ['TENANT_HEADER', 'Authorization'],
  ['CORS_ORIGINS', 'forms.example.org'],
  ['DATABASE_URL', 'postgres://user:pass#canary@host/forms'],
  ['DATABASE_URL', 'postgres://user:100%@host/forms'],
  ['PLATFORM_TIMEOUT', 'PT0S'],
  ['SESSION_IDLE', 'PT0S'],
  ['REDIS_URL', 'redis://:100%@redis'],
  ['REDIS_URL', 'redis://redis:6379/sessions'],
])('%s must not be %s', (name, value) => {
  const { env } = processes['token-handler'] ?? { env: {} };
  const names = inspectSettings(tokenHandler, { ...env, [name]: value }).problems.map((one) => one.name);
  expect(names).toEqual([name]);
});

it('every case belongs to a rule', () => {
  const titles = Object.values(processes).flatMap(({ settings }) =>
    (settings.rules ?? []).map(({ names, problem }) => `${names[0]} ${problem}`),
  );
  expect(Object.keys(cases).filter((title) => !titles.includes(title))).toEqual([]);
});

function caseOf(title: string, { form }: SettingsRule, schema: z.ZodObject): Case {
  const found = form ? generate(form, schema) : cases[title];
  if (!found) throw new Error(`There is no case of the rule: ${title}`);
  return found;
}

function generate(form: RuleForm, schema: z.ZodObject): Case {
  if (form.kind === 'needs') {
    const { name, needed } = form;
    const both = { [name]: sample(name), [needed]: sample(needed) };
    return { bad: [{ ...both, [needed]: undefined }], good: [both, { ...both, [name]: undefined }] };
  }
  if (form.kind === 'excludes') {
    const both = { [form.name]: sample(form.name), [form.other]: sample(form.other) };
    return {
      bad: [both],
      good: [
        { ...both, [form.name]: undefined },
        { ...both, [form.other]: undefined },
      ],
    };
  }
  const { lower, upper, mayEqual } = form;
  const { text, value: usual } = defaultOf(schema, upper);
  const write = (number: number) => (text.startsWith('P') ? `PT${number / 1_000}S` : String(number));
  const step = text.startsWith('P') ? 1_000 : 1;
  // A part of the default of the upper setting, because the whole default may exceed the maximum of the lower setting.
  const isPossible = (number: number) => (schema.shape[lower] as z.ZodType).safeParse(write(number + step)).success;
  const value = [usual / 2, usual / 10, usual / 1_024].find(isPossible) ?? Number.NaN;
  const [below, equal, above] = [value - step, value, value + step].map((number) => ({
    [upper]: write(value),
    [lower]: write(number),
  })) as [Env, Env, Env];
  return mayEqual ? { bad: [above], good: [below, equal] } : { bad: [above, equal], good: [below] };
}

function sample(name: string): string {
  const value = samples[name];
  if (value === undefined) throw new Error(`There is no sample of ${name}`);
  return value;
}

/** Returns the default of a setting as text and as a number. */
function defaultOf({ shape }: z.ZodObject, name: string): { text: string; value: number } {
  const field = shape[name];
  const inner = field instanceof z.ZodPipe ? field.in : field;
  if (!(inner instanceof z.ZodDefault)) throw new Error(`${name} has no default`);
  return { text: String(inner.def.defaultValue), value: Number((field as z.ZodType).parse(undefined)) };
}
