// Generates the documentation of the chart's values: the README's table from the comments in values.yaml, and the
// settings that each component's `env` accepts from the schemas of the processes. The tests in test/chart render the
// chart.
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { z } from 'zod';
import { configSchema as reconcilerSchema } from '../../reconciler/config.ts';
import { configSchema as formsSchema } from '../../src/forms/config.ts';
import { configSchema as platformServerSchema } from '../../src/platform-server/config.ts';
import { durationFormat, durationPatterns } from '../../src/service/operations/duration.ts';
import { oldNamesOf } from '../../src/service/operations/renamed-settings.ts';
import { configSchema as tokenHandlerSchema } from '../../src/token-handler/config.ts';
import { pageSettingsSchema } from '../../src/token-handler/pages/settings.ts';
import { withMarkedPart } from './marked-part.ts';

export interface DescribedValue {
  /** Path of the value, in the syntax of `--set`. */
  path: string;
  /** The default in JSON. */
  default: string;
  /** Undefined if the value has no description. */
  meaning: string | undefined;
}

/** A component of the chart that runs a process of Formgate. */
export interface ChartPart {
  schema: z.ZodObject;
  /**
   * The variables that the chart sets, so that `env` must not contain them, with the path of the value that determines
   * each. The path is undefined if the chart sets a fixed value.
   */
  setByChart: Readonly<Record<string, string | undefined>>;
  /** True if the process uses the directory, so that `DIR_…` variables can replace entries of the directory. */
  callsPlatform: boolean;
}

/** The chart sets the variable to a fixed value. */
const fixed = undefined;

/** Variables of every process. The chart sets those of `tracing` only if `tracing.endpoint` names a collector. */
const common = (part: string) => ({
  LOG_LEVEL: 'logLevel',
  URN_PREFIX: 'urnPrefix',
  ACCESS_SERVICE_URL: 'access.url',
  DATABASE_URL: `${part}.database`,
  OTEL_EXPORTER_OTLP_ENDPOINT: 'tracing.endpoint',
  OTEL_EXPORTER_OTLP_HEADERS: 'tracing.headers',
  OTEL_TRACES_SAMPLER: 'tracing.sampler',
  OTEL_TRACES_SAMPLER_ARG: 'tracing.samplerArg',
  OTEL_RESOURCE_ATTRIBUTES: 'tracing.resourceAttributes',
});
const service = (part: string) => ({
  ...common(part),
  PORT: fixed,
  METRICS_PORT: fixed,
  TRUSTED_PROXIES: 'trustedProxies',
  CORS_ORIGINS: 'corsOrigins',
  DRAIN_DEADLINE: 'drain.deadlineSeconds',
  ACCESS_SERVICE_PUBLIC_URL: 'access.publicUrl',
  TENANT_ISSUERS: 'access.tenantIssuers',
});
const platform = (part: string) => ({
  DIRECTORY_URL: 'directory.url',
  CLIENT_ID: `${part}.account.clientId`,
  CLIENT_SECRET: `${part}.account.secret`,
});
const clients = {
  BUILDER_APP_URL: 'tokenHandler.builderAppUrl',
  CONSOLE_URL: 'tokenHandler.consoleUrl',
  ALLOW_INSECURE_REDIRECT_URIS: 'tokenHandler.allowInsecureRedirectUris',
  ALLOW_WILDCARD_REDIRECT_PATHS: 'tokenHandler.allowWildcardRedirectPaths',
};

/** The components, keyed by their names in values.yaml. */
export const chartParts: Readonly<Record<string, ChartPart>> = {
  forms: {
    schema: formsSchema,
    setByChart: {
      ...service('forms'),
      ...platform('forms'),
      CODE_KEY: 'forms.codeKey',
      PAGES: 'forms.pages',
      PUBLIC_URL: 'forms.publicUrl',
      APPLY_CLIENT_ID: 'forms.apply.clientId',
      APPLY_CLIENT_SECRET: 'forms.apply.secret',
      APPLY_KEY_RING: 'forms.apply.keyRing',
    },
    callsPlatform: true,
  },
  tokenHandler: {
    schema: tokenHandlerSchema,
    setByChart: {
      ...service('tokenHandler'),
      ...platform('tokenHandler'),
      ...clients,
      TENANT_HEADER: 'tenantHeader',
      KEY_RING: 'tokenHandler.keyRing',
      PUBLIC_URL: 'tokenHandler.publicUrl',
      SESSION_COOKIE: 'tokenHandler.sessionCookie',
      SIGN_IN_PAGES: 'tokenHandler.signInPages',
      UPSTREAM_ALLOWED_DOMAINS: 'tokenHandler.upstreamAllowedDomains',
      REDIS_URL: 'redis.url',
      REDIS_SENTINELS: 'redis.sentinels',
      REDIS_SENTINEL_NAME: 'redis.sentinelName',
      REDIS_SENTINEL_USERNAME: 'redis.sentinelUsername',
      REDIS_SENTINEL_PASSWORD: 'redis.sentinelPassword',
      REDIS_CLUSTER_NODES: 'redis.clusterNodes',
      REDIS_USERNAME: 'redis.username',
      REDIS_PASSWORD: 'redis.password',
      REDIS_TLS: 'redis.tls.enabled',
      REDIS_TLS_CA: 'redis.tls.ca',
    },
    callsPlatform: true,
  },
  platformServer: {
    schema: platformServerSchema,
    setByChart: {
      ...service('platformServer'),
      MAIL_FROM: 'platformServer.mailFrom',
      SMTP_URL: 'platformServer.smtp',
      CODE_KEY: 'platformServer.codeKey',
      SEED_FILE: fixed,
    },
    callsPlatform: false,
  },
  reconciler: {
    schema: reconcilerSchema,
    // The reconciler uses the form service's database.
    setByChart: { ...common('forms'), ...platform('reconciler'), ...clients },
    callsPlatform: true,
  },
};

/** Returns every value that is not a map, and every map that has a description. */
export function describedValues(yaml: string): DescribedValue[] {
  const { contents } = parseDocument(yaml);
  return isMap(contents) ? valuesOf(contents, '') : [];
}

function valuesOf(map: YAMLMap, prefix: string): DescribedValue[] {
  return map.items.flatMap((pair, index) => {
    const path = `${prefix}${isScalar(pair.key) ? pair.key.value : ''}`;
    const meaning = meaningOf(pair, index === 0 ? map : undefined);
    if (meaning === undefined && isMap(pair.value) && pair.value.items.length > 0)
      return valuesOf(pair.value, `${path}.`);
    const value = (pair.value as { toJSON?(): unknown } | null)?.toJSON?.() ?? null;
    return [{ path, default: JSON.stringify(value), meaning }];
  });
}

/**
 * Returns the description of a value. The parser attaches a comment above the first key of a map to the map instead of
 * the key.
 */
function meaningOf(pair: Pair, map: YAMLMap | undefined): string | undefined {
  const key = pair.key as { commentBefore?: string | null } | null;
  const lines = [map?.commentBefore, key?.commentBefore].flatMap((text) => (text ? text.split('\n') : []));
  const from = lines.findLastIndex((line) => line.startsWith(' -- '));
  if (from < 0) return undefined;
  const text = lines.slice(from).map((line) => line.trim());
  return text.join(' ').slice('-- '.length);
}

/** Returns the README with its table of values replaced. */
export function withValuesTable(readme: string, values: readonly DescribedValue[]): string {
  const rows = values.map(
    ({ path, default: value, meaning = '' }) =>
      `| \`${path}\` | \`${value.replaceAll('|', '\\|')}\` | ${toCell(meaning)} |`,
  );
  const table = ['| value | default | meaning |', '| --- | --- | --- |', ...rows].join('\n');
  return withMarkedPart(readme, { begin: '<!-- values -->', end: '<!-- end of values -->' }, table);
}

/** Escapes a text for a cell of a Markdown table. */
export function toCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

interface JsonSchema {
  definitions: Record<string, unknown>;
}

/** A duration in `env`. An empty text means the default, as it does for the process. */
const durationSchema = {
  type: 'string',
  allOf: durationPatterns.map((pattern) => ({ pattern: `^$|${pattern}` })),
  description: 'ISO 8601 duration in weeks, days, hours, minutes and seconds, such as P15D or PT1H30M',
};

/**
 * Returns values.schema.json with the definition of durations, and with the settings that `env` of each component and
 * `signInPages` accept.
 */
export function withSettings(schema: string, parts: Readonly<Record<string, ChartPart>>): string {
  const document = JSON.parse(schema) as JsonSchema;
  for (const [name, part] of Object.entries(parts)) document.definitions[`${name}Env`] = settingsSchema(part);
  const { $schema: _, ...pages } = z.toJSONSchema(pageSettingsSchema, { io: 'input' });
  document.definitions.signInPages = pages;
  document.definitions.duration = durationSchema;
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function settingsSchema({ schema, setByChart, callsPlatform }: ChartPart): object {
  const settings = Object.entries(schema.shape).filter(([name]) => !(name in setByChart));
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      settings.flatMap(([name, field]) => {
        const { description, format } = (field as z.ZodType).meta() ?? {};
        const text = format === durationFormat.format ? { $ref: '#/definitions/duration' } : { type: 'string' };
        return [
          [name, { ...text, description }],
          ...oldNamesOf(name).map((oldName) => [oldName, { ...text, description: `Old name of ${name}` }]),
        ];
      }),
    ),
    ...(callsPlatform && { patternProperties: { '^DIR_[A-Z0-9_]+$': { type: 'string', pattern: '^https?://' } } }),
  };
}
