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
  /** Variables that the chart sets from values and Secrets, so that `env` must not contain them. */
  setByChart: readonly string[];
  /** True if the process uses the directory, so that `DIR_…` variables can replace entries of the directory. */
  callsPlatform: boolean;
}

/** Variables that the chart sets from the value `tracing`, if this value names a collector. */
const tracing = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_RESOURCE_ATTRIBUTES',
];
const common = ['LOG_LEVEL', 'URN_PREFIX', 'ACCESS_SERVICE_URL', 'DATABASE_URL', ...tracing];
const served = [
  ...common,
  'PORT',
  'METRICS_PORT',
  'TRUSTED_PROXIES',
  'CORS_ORIGINS',
  'DRAIN_DEADLINE',
  'ACCESS_SERVICE_PUBLIC_URL',
  'TENANT_ISSUERS',
];
const platform = ['DIRECTORY_URL', 'CLIENT_ID', 'CLIENT_SECRET'];
const clients = ['BUILDER_APP_URL', 'CONSOLE_URL', 'ALLOW_INSECURE_REDIRECT_URIS', 'ALLOW_WILDCARD_REDIRECT_PATHS'];

/** The components, keyed by their names in values.yaml. */
export const chartParts: Readonly<Record<string, ChartPart>> = {
  forms: {
    schema: formsSchema,
    setByChart: [
      ...served,
      ...platform,
      'CODE_KEY',
      'PAGES',
      'PUBLIC_URL',
      'APPLY_CLIENT_ID',
      'APPLY_CLIENT_SECRET',
      'APPLY_KEY_RING',
    ],
    callsPlatform: true,
  },
  tokenHandler: {
    schema: tokenHandlerSchema,
    setByChart: [
      ...served,
      ...platform,
      ...clients,
      'TENANT_HEADER',
      'KEY_RING',
      'PUBLIC_URL',
      'SESSION_COOKIE',
      'SIGN_IN_PAGES',
      'UPSTREAM_ALLOWED_DOMAINS',
      ...Object.keys(tokenHandlerSchema.shape).filter((name) => name.startsWith('REDIS_')),
    ],
    callsPlatform: true,
  },
  platformServer: {
    schema: platformServerSchema,
    setByChart: [...served, 'MAIL_FROM', 'SMTP_URL', 'CODE_KEY', 'SEED_FILE'],
    callsPlatform: false,
  },
  reconciler: { schema: reconcilerSchema, setByChart: [...common, ...platform, ...clients], callsPlatform: true },
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
  const settings = Object.entries(schema.shape).filter(([name]) => !setByChart.includes(name));
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
