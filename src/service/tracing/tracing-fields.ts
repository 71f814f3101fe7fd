// The settings of traces. Their names, units and defaults are those of the OpenTelemetry specification, so that they
// have the same meaning as in every other process of a cluster.
import { z } from 'zod';
import { httpUrl, integer } from '../operations/config.ts';
import type { SettingsRule } from '../operations/settings-rules.ts';

/**
 * Parses `name=value,name=value`, with values percent-encoded as in W3C Baggage. Error messages never quote a value.
 */
function pairs(names: RegExp) {
  return z
    .string()
    .optional()
    .transform((text, context) => {
      const entries = (text ?? '').split(',').flatMap((item) => {
        if (item.trim() === '') return [];
        const pair = pairOf(item, names);
        if (!pair) context.addIssue('must be a list of name=value, with values percent-encoded');
        return pair ? [pair] : [];
      });
      return Object.fromEntries(entries);
    });
}

function pairOf(item: string, names: RegExp): [string, string] | undefined {
  const [name = '', ...rest] = item.split('=');
  if (rest.length === 0 || !names.test(name.trim())) return undefined;
  try {
    const value = decodeURIComponent(rest.join('=').trim());
    // The value of a header cannot contain other characters.
    return /^[\t\x20-\x7e\x80-\xff]*$/.test(value) ? [name.trim(), value] : undefined;
  } catch {
    return undefined;
  }
}

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

export const tracingFields = {
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl()
    .optional()
    .describe(
      'Base URL of an OpenTelemetry collector, such as http://collector:4318; the process sends traces to /v1/traces below it. Without it, the process makes no traces',
    ),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .enum(['http/protobuf'], 'must be http/protobuf, the only protocol that the process speaks')
    .default('http/protobuf')
    .describe('Protocol of the collector'),
  OTEL_EXPORTER_OTLP_HEADERS: pairs(/^[!#$%&'*+.^_`|~\w-]+$/).describe(
    'Headers of the requests to the collector, as name=value,name=value,… with percent-encoded values, such as authorization=Bearer%20secret',
  ),
  OTEL_EXPORTER_OTLP_TIMEOUT: integer(10_000, { min: 100, max: 60_000 }).describe(
    'Longest time for one export, in milliseconds, including retries',
  ),
  OTEL_SERVICE_NAME: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe('Name of the process in traces; by default the name in its log lines, such as form-service'),
  OTEL_RESOURCE_ATTRIBUTES: pairs(/^[\w.-]{1,255}$/).describe(
    'Further attributes of the process in traces, as name=value,name=value,… such as deployment.environment.name=test',
  ),
  OTEL_TRACES_SAMPLER: z
    .enum(samplers)
    .default('parentbased_always_on')
    .describe(
      'Which traces are recorded. The parentbased_ samplers follow the sampled flag of the caller’s traceparent, which every client can set',
    ),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'must be a number from 0 to 1')
    .transform(Number)
    .optional()
    .describe('Share of the traces that traceidratio and parentbased_traceidratio record, such as 0.1; by default 1'),
  OTEL_BSP_SCHEDULE_DELAY: integer(5_000, { min: 10, max: 60_000 }).describe(
    'Longest time that a span waits for its export, in milliseconds',
  ),
  OTEL_BSP_MAX_QUEUE_SIZE: integer(2_048, { min: 512, max: 65_536 }).describe(
    'Spans that may wait for their export; the process drops further ones',
  ),
};

export type TracingSettings = z.output<z.ZodObject<typeof tracingFields>>;

/** The rules that involve several settings of traces, for `withRules`. */
export const tracingRules: SettingsRule[] = [
  {
    names: ['OTEL_TRACES_SAMPLER_ARG', 'OTEL_TRACES_SAMPLER'],
    holds: ({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share }: TracingSettings) =>
      share === undefined || sampler.endsWith('traceidratio'),
    problem: 'needs OTEL_TRACES_SAMPLER traceidratio or parentbased_traceidratio',
  },
];
