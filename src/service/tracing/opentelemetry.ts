// Creates traces with OpenTelemetry's SDK, which sends them to a collector by OTLP over HTTP. No module is patched:
// Formgate's own code starts every span. Spans wait in a limited queue and are sent in the background, so a slow or
// unreachable collector does not delay requests.
import {
  type Context,
  type Link,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from '../operations/log.ts';
import { productVersion } from '../operations/product-version.ts';
import { within } from '../time-limit.ts';
import { watchExports } from './export-watch.ts';
import type { Attributes, RootOptions, Span, SpanEnd, SpanOptions } from './span.ts';
import { longestFlush, type Tracing } from './tracing.ts';
import type { TracingSettings } from './tracing-fields.ts';

export interface OpenTelemetryOptions {
  name: string;
  endpoint: string;
  config: TracingSettings;
  log: Logger;
}

/**
 * Maximum number of concurrent exports. It is reached only if the collector is slow. Each export holds up to 512 spans.
 */
const mostExports = 4;

export function createTracing({ name, endpoint, config, log }: OpenTelemetryOptions): Tracing {
  const exporter = watchExports(
    new OTLPTraceExporter({
      url: `${endpoint}/v1/traces`,
      headers: config.OTEL_EXPORTER_OTLP_HEADERS,
      timeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT,
      concurrencyLimit: mostExports,
    }),
    log,
  );
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      ...config.OTEL_RESOURCE_ATTRIBUTES,
      'service.name': config.OTEL_SERVICE_NAME ?? config.OTEL_RESOURCE_ATTRIBUTES['service.name'] ?? name,
      'service.version': productVersion(),
    }),
    sampler: followLinks(samplerOf(config)),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: config.OTEL_BSP_MAX_QUEUE_SIZE,
        scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
        exportTimeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT + 1_000,
      }),
    ],
  });
  const tracer = provider.getTracer('formgate', productVersion());
  return {
    startRoot: (options) => startRoot(tracer, options),
    failures: () => exporter.failures,
    // Ignores a failure, because `export-watch.ts` logs failed exports.
    close: () => within(provider.shutdown(), longestFlush, new Error('the collector is slow')).catch(() => undefined),
  };
}

function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share = 1 }: TracingSettings): Sampler {
  const root = rootSampler(name.replace('parentbased_', ''), share);
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, share: number): Sampler {
  if (name === 'always_on') return new AlwaysOnSampler();
  return name === 'always_off' ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(share);
}

/**
 * Samples all children of a sampled span of this process. Samples the delivery of an outbox row if the request that
 * wrote the row was sampled. With only a ratio, the request and the delivery would seldom both be sampled.
 */
function followLinks(sampler: Sampler): Sampler {
  return {
    shouldSample(context, traceId, name, kind, attributes, links) {
      const parent = trace.getSpanContext(context);
      const isLocal = parent !== undefined && parent.isRemote !== true;
      if (isLocal || links.some((link) => (link.context.traceFlags & TraceFlags.SAMPLED) !== 0))
        return { decision: SamplingDecision.RECORD_AND_SAMPLED };
      return sampler.shouldSample(context, traceId, name, kind, attributes, links);
    },
    toString: () => `FollowLinks{${sampler}}`,
  };
}

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

function startRoot(tracer: Tracer, { name, kind, attributes = {}, parent, link }: RootOptions): Span {
  const remote = contextOf(parent);
  const linked = contextOf(link);
  const links: Link[] = linked ? [{ context: linked }] : [];
  const context = remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT;
  const span = tracer.startSpan(name, { kind: kinds[kind], attributes, links }, context);
  return span.isRecording() ? new RecordedSpan(tracer, span) : new UnrecordedSpan(span.spanContext());
}

const traceparentPattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

function contextOf(traceparent: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = traceparentPattern.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

class RecordedSpan implements Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceparent: string;
  readonly isSampled = true;
  readonly #tracer: Tracer;
  readonly #span: OtelSpan;
  readonly #context: Context;

  constructor(tracer: Tracer, span: OtelSpan) {
    const { traceId, spanId } = span.spanContext();
    this.traceId = traceId;
    this.spanId = spanId;
    this.traceparent = `00-${traceId}-${spanId}-01`;
    this.#tracer = tracer;
    this.#span = span;
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  child({ name, kind, attributes = {} }: SpanOptions): Span {
    const span = this.#tracer.startSpan(name, { kind: kinds[kind], attributes }, this.#context);
    return new RecordedSpan(this.#tracer, span);
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(attributes);
  }

  end({ name, attributes, error }: SpanEnd = {}): void {
    if (name !== undefined) this.#span.updateName(name);
    if (attributes) this.#span.setAttributes(attributes);
    if (error !== undefined) this.#span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}

/** A span that is not exported. Its `traceparent` tells the next service that the trace is not sampled. */
class UnrecordedSpan implements Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceparent: string;
  readonly isSampled = false;

  constructor({ traceId, spanId }: SpanContext) {
    this.traceId = traceId;
    this.spanId = spanId;
    this.traceparent = `00-${traceId}-${spanId}-00`;
  }

  child(): Span {
    return this;
  }

  set(): void {}

  end(): void {}
}
