// Tests which settings of traces are valid.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, parseConfig } from '../operations/config.ts';
import { withRules } from '../operations/settings-rules.ts';
import { tracingFields, tracingRules } from './tracing-fields.ts';

const schema = withRules(z.object(tracingFields), ...tracingRules);

function problemOf(env: NodeJS.ProcessEnv): string | undefined {
  try {
    parseConfig(schema, env);
    return undefined;
  } catch (error) {
    return error instanceof ConfigError ? error.problems.map(({ name, problem }) => `${name} ${problem}`).join() : '';
  }
}

describe('the settings of traces', () => {
  it('have the defaults of OpenTelemetry, and no collector', () => {
    expect(parseConfig(schema, {})).toEqual({
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_HEADERS: {},
      OTEL_EXPORTER_OTLP_TIMEOUT: 10_000,
      OTEL_RESOURCE_ATTRIBUTES: {},
      OTEL_TRACES_SAMPLER: 'parentbased_always_on',
      OTEL_BSP_SCHEDULE_DELAY: 5_000,
      OTEL_BSP_MAX_QUEUE_SIZE: 2_048,
    });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', 'http or https URL'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'must be http/protobuf'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'canary', 'list of name=value'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%E0%A4%A', 'list of name=value'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a b=canary', 'list of name=value'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=1%0D%0Acanary', 'list of name=value'],
    ['OTEL_RESOURCE_ATTRIBUTES', '=canary', 'list of name=value'],
    ['OTEL_TRACES_SAMPLER', 'sometimes', 'always_on'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5', 'from 0 to 1'],
    ['OTEL_TRACES_SAMPLER_ARG', '0.5', 'needs OTEL_TRACES_SAMPLER'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '1000000', 'from 512 to 65536'],
  ])('reject %s=%s', (name, value, problem) => {
    const found = problemOf({ [name]: value });
    expect(found).toContain(name);
    expect(found).toContain(problem);
    expect(found).not.toContain('canary');
  });

  it('accept a share with a sampler of shares', () => {
    expect(problemOf({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' })).toBeUndefined();
  });
});
